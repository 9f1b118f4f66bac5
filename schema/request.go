package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// What programs ask for while a stack runs is decoded as if it stood in its
// files, so that both mean the same and have the same mistakes.

// RequestContext is the stack that requests are made to.
type RequestContext struct {
	Stack *Desired // with what was launched
	// Provider is the one that those who name none get; "": the stack's only
	// one, or local. Region is where they are put on Google Cloud who name no
	// place; "": wherever the provider's zones are.
	Provider ProviderName
	Region   string
}

// Request is a job as a program asks for it.
type Request struct {
	Path string // of the request within its message, "requests[2]": mistakes begin with it
	Addr Address
	// Namespace and Environment are what the job has; fields go over the latter.
	Namespace   string
	Environment Environment
	// Reservation is the scoped name of the one that it draws from, "" for none.
	// ReservationPath is where that is said, "" if it follows from elsewhere.
	Reservation     string
	ReservationPath string
	Tasks           int // at once; 0 or 1: as many as its slices have hosts
	Fields          []Field
}

// ReservationRequest is a reservation as a program asks for it.
type ReservationRequest struct {
	Path      string
	Addr      Address
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

// Job decodes a job, or tells all that is wrong with the request.
func (c *RequestContext) Job(r *Request) (*Job, []Mistake) {
	e := c.evaluator()
	fields := r.Fields
	if r.Reservation == "" {
		fields = e.placed(c, fields, "resources.regions", "resources.regions")
	}
	b := e.requested(jobType(), r.Path, fields)
	decl := &declaration{addr: r.Addr, block: b}
	j := &Job{Addr: r.Addr, Namespace: r.Namespace}
	switch {
	case b.attr("command") != nil:
		e.command(decl, nil, j)
	case r.Environment.Callable == "":
		e.errorAt(fieldRange(joinPath(r.Path, "entrypoint")), "Missing attribute", "A job needs an entrypoint: a command with its arguments, or a callable.")
	}
	if r.Reservation == "" {
		e.resources(decl, nil, j)
	} else {
		e.drawn(b.child("resources"), r, &j.Resources)
	}
	e.tasks(b, r, j)
	e.requestedEnvironment(b, r, j)
	e.retries(decl, nil, j)
	e.healthCheck(decl, nil, j)
	e.jobSettings(decl, nil, j)
	e.checkRegions(r, &j.Resources)
	return j, e.mistakes()
}

// Reservation decodes a reservation, or tells all that is wrong with the request.
func (c *RequestContext) Reservation(r *ReservationRequest) (*Reservation, []Mistake) {
	e := c.evaluator()
	fields := e.placed(c, r.Fields, "regions", "max.regions")
	decl := &declaration{addr: r.Addr, block: e.requested(reservationType(), r.Path, fields)}
	made, _ := e.reservation(decl)
	// It keeps one slice ahead: whoever asks for it starts jobs as they appear.
	made.Addr, made.Namespace, made.Growth = r.Addr, r.Namespace, GrowthOffer
	return &made, e.mistakes()
}

// evaluator is one for requests: all that they can refer to is the stack.
func (c *RequestContext) evaluator() *evaluator {
	source := &Source{dir: "/", root: &moduleFiles{dir: "/"}, files: map[string]*hcl.File{}}
	s := source.session(Options{Local: c.Stack.Local}, maxInstances)
	s.all = s.modules()
	e := s.evaluator(s.all[0], nil, instance{})
	s.implied, s.gcp = ProviderLocal, Provider{Name: ProviderGCP}
	for i := range c.Stack.Providers {
		p := &c.Stack.Providers[i]
		e.decls.providers[p.Name] = &block{typ: &blockType{name: "provider"}}
		if p.Name == ProviderGCP {
			s.gcp = *p
		}
	}
	switch {
	case c.Provider != "":
		s.implied = c.Provider
	case len(c.Stack.Providers) == 1:
		s.implied = c.Stack.Providers[0].Name
	}
	for i := range c.Stack.Reservations {
		s.reservations[c.Stack.Reservations[i].Addr] = &c.Stack.Reservations[i]
	}
	return e
}

// mistakes are the errors found so far.
func (e *evaluator) mistakes() []Mistake {
	var found []Mistake
	for _, d := range e.diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		m := Mistake{Summary: d.Summary, Detail: d.Detail, Missing: hasCause(d, causeNoReservation)}
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

// requested is the block of a type that fields make, each at its own place.
func (e *evaluator) requested(typ *blockType, path string, fields []Field) *block {
	b := emptyBlock(typ, path)
	for i := range fields {
		f := &fields[i]
		at, words := b, strings.Split(f.Attr, ".")
		name := words[len(words)-1]
		for depth, word := range words[:len(words)-1] {
			child := at.child(word)
			if child == nil {
				child = emptyBlock(at.typ.variants(word)[0], joinPath(path, outerPath(f.Path, len(words)-1-depth)))
				at.blocks[word] = []*block{child}
			}
			at = child
		}
		rng := fieldRange(joinPath(path, f.Path))
		at.attrs[name] = &expression{name: name, expr: valueExpr(f.Value, rng), rng: rng}
	}
	if b.child("resources") == nil && len(typ.variants("resources")) > 0 {
		b.blocks["resources"] = []*block{emptyBlock(resourcesType(), joinPath(path, "resources"))}
	}
	return b
}

// outerPath is a path without its last n words.
func outerPath(path string, n int) string {
	for range n {
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return path
}

func emptyBlock(typ *blockType, path string) *block {
	return &block{
		typ: typ, src: &hclsyntax.Block{Type: typ.name, TypeRange: fieldRange(path)},
		attrs: map[string]*expression{}, blocks: map[string][]*block{},
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
