package render

import (
	"io"
	"strconv"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Record is something as it is, with nothing planned for it.
type Record struct {
	Addr  schema.Address
	Attrs []*plan.AttrChange // Before and After are equal
}

// Records writes records as blocks, in the manner of a change's but without
// marks: "# ADDRESS:", then the block. Options.Verbose changes nothing.
func Records(w io.Writer, records []Record, opts Options) error {
	p := newPrinter(w, opts)
	p.verbose = true
	for i := range records {
		r := &records[i]
		if i > 0 {
			p.print("\n")
		}
		p.print(p.paint(bold, "# "+clean(r.Addr.String())+":"), "\n")
		p.print(string(r.Addr.Kind), " ", strconv.Quote(r.Addr.Name), " {")
		if len(r.Attrs) > 0 {
			p.print("\n")
			p.body(0, treeOf(known(r.Attrs)), plan.VerbNone)
		}
		p.print("}\n")
	}
	return p.flush()
}

// known is attrs with a placeholder where a value is not known, so that both
// sides of it are equal.
func known(attrs []*plan.AttrChange) []*plan.AttrChange {
	out := make([]*plan.AttrChange, len(attrs))
	for i, a := range attrs {
		if a.Unknown {
			shown := *a
			shown.Unknown, shown.Before, shown.After = false, unknownJSON(), unknownJSON()
			a = &shown
		}
		out[i] = a
	}
	return out
}

func unknownJSON() []byte { return []byte(`{"unknown":true}`) }
