package change

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Described is something that was carried out, as the state records it.
type Described struct {
	Addr  schema.Address
	Job   *state.Job         // nil for what has no processes
	Attrs []*plan.AttrChange // of its spec, every one as it is: Before and After are equal
}

// Describe lists everything in a state in address order, with its attributes as
// a plan shows them: what is sensitive is only named.
func Describe(doc *state.Document) []Described {
	var all []Described
	for _, addr := range slices.SortedFunc(maps.Keys(doc.Resources), schema.Address.Compare) {
		all = append(all, Described{Addr: addr, Attrs: unchanged(ResourceAttrs(doc.Resources[addr]))})
	}
	for _, addr := range slices.SortedFunc(maps.Keys(doc.Jobs), schema.Address.Compare) {
		j := doc.Jobs[addr]
		all = append(all, Described{Addr: addr, Job: j, Attrs: unchanged(JobAttrs(j.Spec))})
	}
	slices.SortStableFunc(all, func(a, b Described) int { return a.Addr.Compare(b.Addr) })
	return all
}

func unchanged(attrs []Attr) []*plan.AttrChange {
	out := ChangedAttrs(attrs, attrs)
	for i := range out {
		out[i].Verb = plan.VerbNone // what is unknown is not changed by that
	}
	return out
}
