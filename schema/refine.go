package schema

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Evaluation is a configuration that is evaluated again as values become known,
// at the cost of what reads them rather than of all that is declared. What it
// finds is what [Source.Evaluate] would. It is not for concurrent use.
type Evaluation struct {
	last   *session // what was evaluated last; nil if that failed
	source *Source
	opts   Options // with the values that are known, its own to change
	config *Config // its own to change in jobs and outputs

	first   map[*declaration]int // where a declaration's jobs begin in config
	readers map[valued][]reading
	read    map[Address]bool // whose values are read, without keys
	waits   bool             // something waits for values
}

// valued is a symbol of one instance of a module.
type valued struct {
	e *evaluator
	s symbol
}

// Refinement is what became of a configuration when values became known.
type Refinement struct {
	Jobs  []Job   // whose commands or environment variables changed, and nothing else of them
	Whole *Config // instead of Jobs, where more may have changed
}

// reading is an expression that reads a symbol, and what has its value: another
// symbol, an output of the root, a condition, or the command or environment
// variables of a declaration. Values reach nothing else but by ways such as
// can(), for which all is done anew.
type reading struct {
	x         *expression
	in        *evaluator
	of        []valued // locals; outputs of modules and variables of them
	output    string
	condition bool
	decl      *declaration
}

// Begin is Evaluate for those who evaluate again.
func (s *Source) Begin(opts Options) (*Evaluation, hcl.Diagnostics) {
	opts.Computed = maps.Clone(opts.Computed)
	if opts.Computed == nil {
		opts.Computed = map[Address]Computed{}
	}
	v := &Evaluation{source: s, opts: opts}
	if diags := v.whole(); diags.HasErrors() {
		return nil, diags
	}
	return v, v.last.diags
}

// Config is the configuration with the values that are known.
func (v *Evaluation) Config() *Config {
	c := *v.config
	c.Desired.Jobs = slices.Clone(c.Desired.Jobs)
	c.Outputs = maps.Clone(c.Outputs)
	return &c
}

// Reads reports whether something may read values of an instance or a
// reservation.
func (v *Evaluation) Reads(addr Address) bool {
	if addr.Kind == KindReservation {
		return v.waits
	}
	return v.read[addr.Base()] || addr.Group != "" && v.read[addr.GroupAddress()]
}

// Refine takes in values of some instances; those of all others are as before.
// After an error there is nothing to refine: the next call begins anew.
func (v *Evaluation) Refine(known map[Address]Computed) (Refinement, hcl.Diagnostics) {
	var changed []valued
	for addr, c := range known {
		if equalComputed(v.opts.Computed[addr], c) {
			continue
		}
		v.opts.Computed[addr] = c
		if v.last == nil {
			continue
		}
		if e := v.last.byPath[addr.Module]; e != nil {
			changed = append(changed, valued{e, thing(addr)})
			if group := addr.GroupAddress(); !group.IsZero() {
				changed = append(changed, valued{e, thing(group)})
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

func equalComputed(a, b Computed) bool {
	return a.ID == b.ID && a.Status == b.Status && slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.Slices, b.Slices) && maps.Equal(a.Ports, b.Ports)
}

// whole evaluates everything and notes what reads what.
func (v *Evaluation) whole() hcl.Diagnostics {
	v.last = nil
	all := v.source.session(v.opts, maxInstances)
	config, diags := all.evaluate()
	if diags.HasErrors() {
		return diags
	}
	v.last, v.config, v.waits = all, config, config.Waits()
	v.first, v.readers, v.read = map[*declaration]int{}, map[valued][]reading{}, map[Address]bool{}
	for _, e := range all.order {
		v.noteModule(e)
	}
	return nil
}

func (v *Evaluation) noteModule(e *evaluator) {
	whole := func(x *expression) { v.note(reading{x: x, in: e}) }
	condition := func(x *expression) { v.note(reading{x: x, in: e, condition: true}) }
	for name, l := range e.decls.locals {
		v.note(reading{x: l.x, in: e, of: []valued{{e, symbol{root: rootLocal, name: name}}}})
	}
	for name, b := range e.decls.outputs {
		r := reading{x: b.attr("value"), in: e, output: name}
		if e.parent != nil {
			r.of = []valued{
				{e, symbol{root: rootOutput, name: name}},
				{e.parent, symbol{root: rootModule, name: e.mod.name, output: name}},
				{e.parent, symbol{root: rootModule, name: e.mod.name}},
			}
		}
		v.note(r)
		for _, pre := range b.blocks["precondition"] {
			pre.walk(condition)
		}
	}
	for _, b := range e.decls.checks {
		for _, assert := range b.blocks["assert"] {
			assert.walk(condition)
		}
	}
	for _, b := range e.decls.variables {
		b.walk(whole)
	}
	for name, call := range e.decls.calls {
		v.noteCall(e, name, call.block)
	}
	for _, data := range e.decls.data {
		data.block.walk(whole)
	}
	e.decls.fray.walk(whole)
	e.decls.controller.walk(whole)
	for _, b := range slices.Concat(slices.Collect(maps.Values(e.decls.providers)), e.decls.imports) {
		b.walk(whole)
	}
	for _, decl := range e.decls.sorted(Kinds()...) {
		v.noteDeclaration(e, decl)
	}
}

// noteCall notes that the arguments of a module call are its variables.
func (v *Evaluation) noteCall(e *evaluator, name string, b *block) {
	for _, x := range b.attrs {
		r := reading{x: x, in: e}
		if b.typ.attr(x.name) == nil {
			for _, child := range e.children[name] {
				r.of = append(r.of, valued{child, symbol{root: rootVar, name: x.name}})
			}
		}
		v.note(r)
	}
}

func (v *Evaluation) noteDeclaration(e *evaluator, decl *declaration) {
	for _, on := range decl.uses {
		v.read[on.Base()] = true
	}
	if decl.addr.Kind == KindJobGroup { // its jobs are declarations of their own
		for _, x := range decl.block.attrs {
			v.note(reading{x: x, in: e})
		}
		return
	}
	if decl.addr.Kind == KindJob || decl.addr.Kind == KindActorService {
		v.first[decl] = v.firstOf(e, decl)
	}
	v.noteSelf(e, decl)
	b := decl.block
	texts := []*expression{b.attr("command"), b.attr("args"), b.child("environment").attr("env"), b.child(actorBlock).attr("args")}
	var conditions []*expression
	for _, kind := range []ConditionKind{Precondition, Postcondition} {
		for _, child := range b.child("lifecycle").children(string(kind)) {
			child.walk(func(x *expression) { conditions = append(conditions, x) })
		}
	}
	b.walk(func(x *expression) {
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
func (v *Evaluation) noteSelf(e *evaluator, decl *declaration) {
	for _, b := range decl.block.child("lifecycle").children(string(Postcondition)) {
		v.read[e.global(decl.addr)] = true
		at := valued{e, thing(decl.addr)}
		b.walk(func(x *expression) { v.readers[at] = append(v.readers[at], reading{x: x, in: e, condition: true}) })
	}
}

// firstOf is where the jobs of a declaration begin in the configuration.
func (v *Evaluation) firstOf(e *evaluator, decl *declaration) int {
	if len(decl.instances) == 0 {
		return 0
	}
	addr := e.global(decl.instances[0].addr(decl.addr))
	at, _ := slices.BinarySearchFunc(v.config.Desired.Jobs, addr, func(j Job, a Address) int { return j.Addr.Compare(a) })
	return at
}

func (v *Evaluation) note(r reading) {
	if r.x == nil {
		return
	}
	for _, ref := range r.x.refs {
		switch ref.symbol.root {
		case rootThing, rootLocal, rootModule, rootData:
		case rootVar:
			if r.in.parent == nil {
				continue // given from outside
			}
		case rootPath, rootCount, rootEach, rootFray, rootSelf, rootOutput, rootValidation:
			continue
		}
		at := valued{r.in, ref.symbol}
		v.readers[at] = append(v.readers[at], r)
	}
}

// part evaluates what reads the changed symbols, and returns the jobs that are
// not as they were. It reports false if that does not settle it, and then
// nothing that was found holds.
func (v *Evaluation) part(changed []valued) ([]Job, bool) {
	stale, ok := v.forget(changed)
	if !ok {
		return nil, false
	}
	told := len(v.last.diags)
	rank := func(at valued) int { return v.last.rank[node{at.e.mod, at.s}] }
	values := slices.SortedFunc(maps.Keys(stale.values), func(a, b valued) int { return cmp.Compare(rank(a), rank(b)) })
	for _, at := range values {
		at.e.evaluateSymbol(at.s)
		if len(v.last.diags) > told {
			return nil, false // it has no value
		}
	}
	root := v.last.root()
	for name := range stale.outputs {
		v.config.Outputs[name] = root.output(root.decls.outputs[name])
	}
	if stale.conditions {
		v.config.Conditions = nil
		for _, e := range v.last.order {
			v.config.Conditions = append(v.config.Conditions, e.conditions()...)
		}
	}
	decls := slices.SortedFunc(maps.Keys(stale.decls), func(a, b *declaration) int { return cmp.Compare(v.first[a], v.first[b]) })
	var jobs []Job
	for _, decl := range decls {
		jobs = append(jobs, v.decode(stale.decls[decl], decl)...)
	}
	return jobs, len(v.last.diags) == told
}

// decode decodes a declaration again and returns its jobs that changed.
func (v *Evaluation) decode(e *evaluator, decl *declaration) []Job {
	var changed []Job
	jobs := v.config.Desired.Jobs[v.first[decl]:]
	for i, job := range e.jobs(decl) {
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
	decls      map[*declaration]*evaluator
	conditions bool
}

// forget drops what was made of symbols, directly or through others. It reports
// false if they reach what only an evaluation of everything settles.
func (v *Evaluation) forget(changed []valued) (stale, bool) {
	found := stale{values: map[valued]bool{}, outputs: map[string]bool{}, decls: map[*declaration]*evaluator{}}
	for len(changed) > 0 {
		at := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		if at.s.root == rootThing {
			delete(at.e.objects, at.s.addr)
		}
		for _, r := range v.readers[at] {
			r.x.ctx, r.x.result, r.x.hoisted = nil, nil, nil
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
					found.values[next] = next.s.root != rootModule
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
