package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/decode"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// What programs ask for while a stack runs is decoded as if it stood in its
// files, so that both mean the same and have the same mistakes.

// Context is the stack that requests are made to.
type Context struct {
	Stack *schema.Desired // with what was launched
	// Provider is the default for requests that name none; "": the stack's only
	// one, or local. Region is the default on Google Cloud for requests that name
	// neither zones nor regions; "": wherever the provider's zones are.
	Provider schema.ProviderName
	Region   string
}

// Job is a job as a program asks for it.
type Job struct {
	Path string // of the request within its message, "requests[2]": mistakes begin with it
	Addr schema.Address
	// Namespace and Environment are what the job has; fields go over the latter.
	Namespace   string
	Environment schema.Environment
	// Reservation is the scoped name of the one that it draws from, "" for none.
	// ReservationPath is the field that names it, "" if it follows from elsewhere.
	Reservation     string
	ReservationPath string
	Tasks           int // at once; 0 or 1: as many as its slices have hosts
	Fields          []Field
}

// Reservation is a reservation as a program asks for it.
type Reservation struct {
	Path      string
	Addr      schema.Address
	Namespace string // whose launched jobs may draw from it
	Fields    []Field
}

// Field is an attribute of a request.
type Field struct {
	Attr  string // in the language: "resources.tpu"
	Path  string // in the request: "resources.tpu"
	Value cty.Value
}

// Mistake is what is wrong with a field of a request, and what would be accepted.
type Mistake struct {
	Path    string // "requests[2].resources.tpu"
	Summary string
	Detail  string
	Missing bool // the field names something that is not there
}

func (m Mistake) String() string { return fmt.Sprintf("%s: %s: %s", m.Path, m.Summary, m.Detail) }

// Job decodes a job, or returns all mistakes of the request.
func (c *Context) Job(r *Job) (*schema.Job, []Mistake) {
	e := c.requested()
	fields := r.Fields
	if r.Reservation == "" {
		fields = e.placed(c, fields, "resources.regions", "resources.regions")
	}
	b := e.blockOf(language.JobType(), r.Path, fields)
	decl := &configs.Declaration{Addr: r.Addr, Block: b}
	of := e.Decoder.Job(decl, nil)
	j := &schema.Job{Addr: r.Addr, Namespace: r.Namespace}
	switch {
	case b.Attr("command") != nil:
		of.Command(j)
	case r.Environment.Callable == "":
		e.ErrorAt(fieldRange(joinPath(r.Path, "entrypoint")), "Missing attribute", "A job needs an entrypoint: a command with its arguments, or a callable.")
	}
	if r.Reservation == "" {
		of.Resources(j)
	} else {
		e.drawn(b.Child("resources"), r, &j.Resources)
	}
	e.tasks(b, r, j)
	e.requestedEnvironment(b, r, j)
	of.Retries(j)
	of.HealthCheck(j)
	of.JobSettings(j)
	e.checkRegions(r, &j.Resources)
	return j, e.mistakes()
}

// Reservation decodes a reservation, or returns all mistakes of the request.
func (c *Context) Reservation(r *Reservation) (*schema.Reservation, []Mistake) {
	e := c.requested()
	fields := e.placed(c, r.Fields, "regions", "max.regions")
	decl := &configs.Declaration{Addr: r.Addr, Block: e.blockOf(language.ReservationType(), r.Path, fields)}
	made, _ := e.Reservation(decl)
	// It keeps one slice ahead: the program that asks for it starts jobs as they appear.
	made.Addr, made.Namespace, made.Growth = r.Addr, r.Namespace, schema.GrowthOffer
	return &made, e.mistakes()
}

// requested decodes requests: all that they can refer to is the stack.
type requested struct{ *decode.Decoder }

func (c *Context) requested() *requested {
	source := load.Empty("/")
	s := eval.NewSession(source, eval.Options{Local: c.Stack.Local}, eval.MaxInstances)
	s.Modules = configs.Modules(source.Root, s.Report)
	e := s.NewEvaluator(s.Modules[0], nil, configs.Instance{})
	w := decode.New(s)
	w.Implied, w.GCP = schema.ProviderLocal, schema.Provider{Name: schema.ProviderGCP}
	for i := range c.Stack.Providers {
		p := &c.Stack.Providers[i]
		e.Decls.Providers[p.Name] = &configs.Block{Type: &language.BlockType{Name: "provider"}}
		if p.Name == schema.ProviderGCP {
			w.GCP = *p
		}
	}
	switch {
	case c.Provider != "":
		w.Implied = c.Provider
	case len(c.Stack.Providers) == 1:
		w.Implied = c.Stack.Providers[0].Name
	}
	for i := range c.Stack.Reservations {
		w.Reservations[c.Stack.Reservations[i].Addr] = &c.Stack.Reservations[i]
	}
	return &requested{w.Root()}
}

// mistakes are the errors found so far.
func (e *requested) mistakes() []Mistake {
	var found []Mistake
	for _, d := range e.Diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		m := Mistake{Summary: d.Summary, Detail: d.Detail, Missing: diagnose.HasCause(d, diagnose.NoReservation)}
		if d.Subject != nil {
			m.Path = d.Subject.Filename
		}
		found = append(found, m)
	}
	slices.SortStableFunc(found, func(a, b Mistake) int { return strings.Compare(a.Path, b.Path) })
	return found
}

// fieldRange is the range of a field: what a diagnostic calls its file is the
// path in the request.
func fieldRange(path string) hcl.Range { return hcl.Range{Filename: path} }

func joinPath(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// blockOf is the block of a type that fields make, each at its own place.
func (e *requested) blockOf(typ *language.BlockType, path string, fields []Field) *configs.Block {
	b := emptyBlock(typ, path)
	for i := range fields {
		f := &fields[i]
		at, steps := b, strings.Split(f.Attr, ".")
		name := steps[len(steps)-1]
		for depth, step := range steps[:len(steps)-1] {
			child := at.Child(step)
			if child == nil {
				child = emptyBlock(at.Type.Variants(step)[0], joinPath(path, outerPath(f.Path, len(steps)-1-depth)))
				at.Blocks[step] = []*configs.Block{child}
			}
			at = child
		}
		rng := fieldRange(joinPath(path, f.Path))
		at.Attrs[name] = &configs.Expression{Name: name, Expr: valueExpr(f.Value, rng), Range: rng}
	}
	if b.Child("resources") == nil && len(typ.Variants("resources")) > 0 {
		b.Blocks["resources"] = []*configs.Block{emptyBlock(language.ResourcesType(), joinPath(path, "resources"))}
	}
	return b
}

// outerPath is a path without its last n steps.
func outerPath(path string, n int) string {
	for range n {
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return path
}

func emptyBlock(typ *language.BlockType, path string) *configs.Block {
	return &configs.Block{
		Type: typ, Syntax: &hclsyntax.Block{Type: typ.Name, TypeRange: fieldRange(path)},
		Attrs: map[string]*configs.Expression{}, Blocks: map[string][]*configs.Block{},
	}
}

// valueExpr is the expression of a value, whose elements have places too.
func valueExpr(v cty.Value, rng hcl.Range) hclsyntax.Expression {
	switch ty := v.Type(); {
	case v.IsNull() || !v.IsKnown():
	case ty.IsTupleType():
		list := &hclsyntax.TupleConsExpr{SrcRange: rng}
		for it := v.ElementIterator(); it.Next(); {
			_, item := it.Element()
			list.Exprs = append(list.Exprs, valueExpr(item, fieldRange(fmt.Sprintf("%s[%d]", rng.Filename, len(list.Exprs)))))
		}
		return list
	case ty.IsMapType():
		object := &hclsyntax.ObjectConsExpr{SrcRange: rng}
		for it := v.ElementIterator(); it.Next(); {
			key, item := it.Element()
			at := fieldRange(fmt.Sprintf("%s[%q]", rng.Filename, key.AsString()))
			object.Items = append(object.Items, hclsyntax.ObjectConsItem{
				KeyExpr:   &hclsyntax.LiteralValueExpr{Val: key, SrcRange: at},
				ValueExpr: &hclsyntax.LiteralValueExpr{Val: item, SrcRange: at},
			})
		}
		return object
	}
	return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: rng}
}
