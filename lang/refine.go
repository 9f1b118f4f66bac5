package lang

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/decode"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// Evaluation is a configuration that is evaluated again as values become known,
// at the cost of what reads them rather than of all that is declared. What it
// finds is what [Source.Evaluate] would. It is not for concurrent use.
type Evaluation struct {
	last     *eval.Session    // what was evaluated last; nil if that failed
	decoding *decode.Decoding // of what was evaluated last
	source   *Source
	opts     eval.Options   // with the values that are known, its own to change
	config   *schema.Config // its own to change in jobs and outputs

	first   map[*configs.Declaration]int // where a declaration's jobs begin in config
	readers map[valued][]reading
	read    map[schema.Address]bool // whose values are read, without keys
	waits   bool                    // something waits for values
}

// valued is a symbol of one instance of a module.
type valued struct {
	e *eval.Evaluator
	s configs.Symbol
}

// Refinement is what became of a configuration when values became known.
type Refinement struct {
	Jobs  []schema.Job   // whose commands or environment variables changed, and nothing else of them
	Whole *schema.Config // instead of Jobs, where more may have changed
}

// reading is an expression that reads a symbol, and what has its value: another
// symbol, an output of the root, a condition, or the command or environment
// variables of a declaration. Values reach nothing else but by ways such as
// can(), for which all is done anew.
type reading struct {
	x         *configs.Expression
	in        *eval.Evaluator
	of        []valued // locals; outputs of modules and variables of them
	output    string
	condition bool
	decl      *configs.Declaration
}

// Begin is like Evaluate; the result can be evaluated again.
func (s *Source) Begin(opts eval.Options) (*Evaluation, hcl.Diagnostics) {
	opts.Computed = maps.Clone(opts.Computed)
	if opts.Computed == nil {
		opts.Computed = map[schema.Address]schema.Computed{}
	}
	v := &Evaluation{source: s, opts: opts}
	if diags := v.whole(); diags.HasErrors() {
		return nil, diags
	}
	return v, v.last.Diags
}

// Config is the configuration with the values that are known.
func (v *Evaluation) Config() *schema.Config {
	c := *v.config
	c.Desired.Jobs = slices.Clone(c.Desired.Jobs)
	c.Outputs = maps.Clone(c.Outputs)
	return &c
}

// Reads reports whether something may read values of an instance or a
// reservation.
func (v *Evaluation) Reads(addr schema.Address) bool {
	if addr.Kind == schema.KindReservation {
		return v.waits
	}
	return v.read[addr.Base()] || addr.Group != "" && v.read[addr.GroupAddress()]
}

// Refine takes in values of some instances; those of all others are as before.
// After an error there is nothing to refine: the next call begins anew.
func (v *Evaluation) Refine(known map[schema.Address]schema.Computed) (Refinement, hcl.Diagnostics) {
	var changed []valued
	for addr, c := range known {
		if equalComputed(v.opts.Computed[addr], c) {
			continue
		}
		v.opts.Computed[addr] = c
		if v.last == nil {
			continue
		}
		if e := v.last.ByPath[addr.Module]; e != nil {
			changed = append(changed, valued{e, configs.SymbolOf(addr)})
			if group := addr.GroupAddress(); !group.IsZero() {
				changed = append(changed, valued{e, configs.SymbolOf(group)})
			}
		}
	}
	if v.last != nil {
		if jobs, ok := v.part(changed); ok {
			return Refinement{Jobs: jobs}, nil
		}
	}
	if diags := v.whole(); diags.HasErrors() {
		return Refinement{}, diags
	}
	return Refinement{Whole: v.Config()}, nil
}

func equalComputed(a, b schema.Computed) bool {
	return a.ID == b.ID && a.Status == b.Status && slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.Slices, b.Slices) && maps.Equal(a.Ports, b.Ports)
}

// whole evaluates everything and notes what reads what.
func (v *Evaluation) whole() hcl.Diagnostics {
	v.last = nil
	all := eval.NewSession(v.source.Source, v.opts, eval.MaxInstances)
	whole, config, diags := evaluateAll(all)
	if diags.HasErrors() {
		return diags
	}
	v.last, v.decoding, v.config, v.waits = all, whole, config, config.Waits()
	v.first, v.readers, v.read = map[*configs.Declaration]int{}, map[valued][]reading{}, map[schema.Address]bool{}
	for _, e := range all.Order {
		v.noteModule(e)
	}
	return nil
}

func (v *Evaluation) noteModule(e *eval.Evaluator) {
	whole := func(x *configs.Expression) { v.note(reading{x: x, in: e}) }
	condition := func(x *configs.Expression) { v.note(reading{x: x, in: e, condition: true}) }
	for name, l := range e.Decls.Locals {
		v.note(reading{x: l.Expression, in: e, of: []valued{{e, configs.Symbol{Root: configs.RootLocal, Name: name}}}})
	}
	for name, b := range e.Decls.Outputs {
		r := reading{x: b.Attr("value"), in: e, output: name}
		if e.Parent != nil {
			r.of = []valued{
				{e, configs.Symbol{Root: configs.RootOutput, Name: name}},
				{e.Parent, configs.Symbol{Root: configs.RootModule, Name: e.Module.Name, Output: name}},
				{e.Parent, configs.Symbol{Root: configs.RootModule, Name: e.Module.Name}},
			}
		}
		v.note(r)
		for _, pre := range b.Blocks["precondition"] {
			pre.Walk(condition)
		}
	}
	for _, b := range e.Decls.Checks {
		for _, assert := range b.Blocks["assert"] {
			assert.Walk(condition)
		}
	}
	for _, b := range e.Decls.Variables {
		b.Walk(whole)
	}
	for name, call := range e.Decls.Calls {
		v.noteCall(e, name, call.Block)
	}
	for _, data := range e.Decls.Data {
		data.Block.Walk(whole)
	}
	e.Decls.Fray.Walk(whole)
	e.Decls.Controller.Walk(whole)
	for _, b := range slices.Concat(slices.Collect(maps.Values(e.Decls.Providers)), e.Decls.Imports) {
		b.Walk(whole)
	}
	for _, decl := range e.Decls.Sorted(schema.Kinds()...) {
		v.noteDeclaration(e, decl)
	}
}

// noteCall notes that the arguments of a module call are its variables.
func (v *Evaluation) noteCall(e *eval.Evaluator, name string, b *configs.Block) {
	for _, x := range b.Attrs {
		r := reading{x: x, in: e}
		if b.Type.Attr(x.Name) == nil {
			for _, child := range e.Children[name] {
				r.of = append(r.of, valued{child, configs.Symbol{Root: configs.RootVar, Name: x.Name}})
			}
		}
		v.note(r)
	}
}

func (v *Evaluation) noteDeclaration(e *eval.Evaluator, decl *configs.Declaration) {
	for _, on := range decl.Uses {
		v.read[on.Base()] = true
	}
	if decl.Addr.Kind == schema.KindJobGroup { // its jobs are declarations of their own
		for _, x := range decl.Block.Attrs {
			v.note(reading{x: x, in: e})
		}
		return
	}
	if decl.Addr.Kind == schema.KindJob || decl.Addr.Kind == schema.KindActorService {
		v.first[decl] = v.firstOf(e, decl)
	}
	v.noteSelf(e, decl)
	b := decl.Block
	texts := []*configs.Expression{b.Attr("command"), b.Attr("args"), b.Child("environment").Attr("env"), b.Child(language.ActorBlock).Attr("args")}
	var conditions []*configs.Expression
	for _, kind := range []schema.ConditionKind{schema.Precondition, schema.Postcondition} {
		for _, child := range b.Child("lifecycle").Children(string(kind)) {
			child.Walk(func(x *configs.Expression) { conditions = append(conditions, x) })
		}
	}
	b.Walk(func(x *configs.Expression) {
		switch {
		case slices.Contains(texts, x):
			v.note(reading{x: x, in: e, decl: decl})
		case slices.Contains(conditions, x):
			v.note(reading{x: x, in: e, condition: true})
		default:
			v.note(reading{x: x, in: e})
		}
	})
}

// noteSelf notes that postconditions read what they are of.
func (v *Evaluation) noteSelf(e *eval.Evaluator, decl *configs.Declaration) {
	for _, b := range decl.Block.Child("lifecycle").Children(string(schema.Postcondition)) {
		v.read[e.Global(decl.Addr)] = true
		at := valued{e, configs.SymbolOf(decl.Addr)}
		b.Walk(func(x *configs.Expression) {
			v.readers[at] = append(v.readers[at], reading{x: x, in: e, condition: true})
		})
	}
}

// firstOf is where the jobs of a declaration begin in the configuration.
func (v *Evaluation) firstOf(e *eval.Evaluator, decl *configs.Declaration) int {
	if len(decl.Instances) == 0 {
		return 0
	}
	addr := e.Global(decl.Instances[0].Addr(decl.Addr))
	at, _ := slices.BinarySearchFunc(v.config.Desired.Jobs, addr, func(j schema.Job, a schema.Address) int { return j.Addr.Compare(a) })
	return at
}

func (v *Evaluation) note(r reading) {
	if r.x == nil {
		return
	}
	for _, ref := range r.x.Refs {
		switch ref.Symbol.Root {
		case configs.RootAddressed, configs.RootLocal, configs.RootModule, configs.RootData:
		case configs.RootVar:
			if r.in.Parent == nil {
				continue // given from outside
			}
		case configs.RootPath, configs.RootCount, configs.RootEach, configs.RootFray, configs.RootSelf, configs.RootOutput, configs.RootValidation:
			continue
		}
		at := valued{r.in, ref.Symbol}
		v.readers[at] = append(v.readers[at], r)
	}
}

// part evaluates what reads the changed symbols, and returns the jobs that are
// not as they were. It reports false if that does not settle it, and then
// nothing that was found holds.
func (v *Evaluation) part(changed []valued) ([]schema.Job, bool) {
	stale, ok := v.forget(changed)
	if !ok {
		return nil, false
	}
	before := len(v.last.Diags)
	rank := func(at valued) int { return v.last.Rank[configs.Node{Module: at.e.Module, Symbol: at.s}] }
	values := slices.SortedFunc(maps.Keys(stale.values), func(a, b valued) int { return cmp.Compare(rank(a), rank(b)) })
	for _, at := range values {
		at.e.EvaluateSymbol(at.s)
		if len(v.last.Diags) > before {
			return nil, false // it has no value
		}
	}
	root := v.decoding.Root()
	for name := range stale.outputs {
		v.config.Outputs[name] = root.Output(root.Decls.Outputs[name])
	}
	if stale.conditions {
		v.config.Conditions = nil
		for _, e := range v.decoding.Order {
			v.config.Conditions = append(v.config.Conditions, e.Conditions()...)
		}
	}
	decls := slices.SortedFunc(maps.Keys(stale.decls), func(a, b *configs.Declaration) int { return cmp.Compare(v.first[a], v.first[b]) })
	var jobs []schema.Job
	for _, decl := range decls {
		jobs = append(jobs, v.decode(stale.decls[decl], decl)...)
	}
	return jobs, len(v.last.Diags) == before
}

// decode decodes a declaration again and returns its jobs that changed.
func (v *Evaluation) decode(e *eval.Evaluator, decl *configs.Declaration) []schema.Job {
	var changed []schema.Job
	jobs := v.config.Desired.Jobs[v.first[decl]:]
	for i, job := range v.decoding.Of[e].Jobs(decl) {
		if !slices.Equal(job.Command, jobs[i].Command) || !maps.Equal(job.Environment.Env, jobs[i].Environment.Env) {
			jobs[i] = job
			changed = append(changed, job)
		}
	}
	return changed
}

// stale is what is to be evaluated again.
type stale struct {
	values     map[valued]bool
	outputs    map[string]bool // of the root
	decls      map[*configs.Declaration]*eval.Evaluator
	conditions bool
}

// forget drops what was made of symbols, directly or through others. It reports
// false if they reach what only an evaluation of everything settles.
func (v *Evaluation) forget(changed []valued) (stale, bool) {
	found := stale{values: map[valued]bool{}, outputs: map[string]bool{}, decls: map[*configs.Declaration]*eval.Evaluator{}}
	for len(changed) > 0 {
		at := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		if at.s.Root == configs.RootAddressed {
			delete(at.e.Objects, at.s.Addr)
		}
		for _, r := range v.readers[at] {
			r.x.Forget()
			switch {
			case r.decl != nil:
				found.decls[r.decl] = r.in
			case r.condition:
				found.conditions = true
			case len(r.of) > 0:
				if found.values[r.of[0]] {
					continue
				}
				for _, next := range r.of {
					found.values[next] = next.s.Root != configs.RootModule
					changed = append(changed, next)
				}
			case r.output != "":
				found.outputs[r.output] = true
			default:
				return found, false
			}
		}
	}
	maps.DeleteFunc(found.values, func(_ valued, evaluate bool) bool { return !evaluate })
	return found, true
}
