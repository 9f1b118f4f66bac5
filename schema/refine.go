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
	e      *evaluator // of what was evaluated last; nil if that failed
	source *Source
	opts   Options // with the values that are known, its own to change
	config *Config // its own to change in jobs and outputs

	first   map[*declaration]int // where a declaration's jobs begin in config
	readers map[symbol][]reading
	read    map[Address]bool // whose values jobs read, without keys
}

// Refinement is what became of a configuration when values became known.
type Refinement struct {
	Jobs  []Job   // whose commands or environment variables changed, and nothing else of them
	Whole *Config // instead of Jobs, where more may have changed
}

// reading is an expression that reads a symbol, and what has its value: a local,
// an output, or the command or environment variables of a declaration. Values
// reach nothing else but by ways such as can(), for which all is done anew.
type reading struct {
	x             *expression
	local, output string
	decl          *declaration
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
	return v, v.e.diags
}

// Config is the configuration with the values that are known.
func (v *Evaluation) Config() *Config {
	c := *v.config
	c.Desired.Jobs = slices.Clone(c.Desired.Jobs)
	c.Outputs = maps.Clone(c.Outputs)
	return &c
}

// Reads reports whether a job reads values of an instance.
func (v *Evaluation) Reads(addr Address) bool {
	return v.read[addr.Base()] || addr.Group != "" && v.read[groupOf(addr)]
}

// Refine takes in values of some instances; those of all others are as before.
// After an error there is nothing to refine: the next call begins anew.
func (v *Evaluation) Refine(known map[Address]Computed) (Refinement, hcl.Diagnostics) {
	var changed []symbol
	for addr, c := range known {
		if equalComputed(v.opts.Computed[addr], c) {
			continue
		}
		v.opts.Computed[addr] = c
		changed = append(changed, thing(addr))
		if addr.Group != "" {
			changed = append(changed, thing(groupOf(addr)))
		}
	}
	if v.e != nil {
		if jobs, ok := v.part(changed); ok {
			return Refinement{Jobs: jobs}, nil
		}
	}
	if diags := v.whole(); diags.HasErrors() {
		return Refinement{}, diags
	}
	return Refinement{Whole: v.Config()}, nil
}

func groupOf(job Address) Address { return Address{Kind: KindJobGroup, Name: job.Group} }

func equalComputed(a, b Computed) bool {
	return a.ID == b.ID && a.Status == b.Status && slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.Slices, b.Slices) && maps.Equal(a.Ports, b.Ports)
}

// whole evaluates everything and notes what reads what.
func (v *Evaluation) whole() hcl.Diagnostics {
	v.e = nil
	e := v.source.evaluator(v.opts, maxInstances)
	config, diags := e.evaluate()
	if diags.HasErrors() {
		return diags
	}
	v.e, v.config = e, config
	v.first, v.readers, v.read = map[*declaration]int{}, map[symbol][]reading{}, map[Address]bool{}
	for name, l := range e.decls.locals {
		v.note(reading{x: l.x, local: name})
	}
	for name, b := range e.decls.outputs {
		v.note(reading{x: b.attr("value"), output: name})
	}
	whole := func(x *expression) { v.note(reading{x: x}) }
	e.decls.fray.walk(whole)
	e.decls.controller.walk(whole)
	for _, b := range e.decls.providers {
		b.walk(whole)
	}
	jobs := 0
	for _, decl := range e.decls.sorted(Kinds()...) {
		v.noteDeclaration(decl)
		if decl.addr.Kind == KindJob || decl.addr.Kind == KindActorService {
			v.first[decl] = jobs
			jobs += len(decl.instances)
		}
	}
	return nil
}

func (v *Evaluation) noteDeclaration(decl *declaration) {
	for _, on := range decl.uses {
		v.read[on.Base()] = true
	}
	if decl.addr.Kind == KindJobGroup { // its jobs are declarations of their own
		for _, x := range decl.block.attrs {
			v.note(reading{x: x})
		}
		return
	}
	b := decl.block
	texts := []*expression{b.attr("command"), b.attr("args"), b.child("environment").attr("env")}
	b.walk(func(x *expression) {
		if slices.Contains(texts, x) {
			v.note(reading{x: x, decl: decl})
		} else {
			v.note(reading{x: x})
		}
	})
}

func (v *Evaluation) note(r reading) {
	if r.x == nil {
		return
	}
	for _, ref := range r.x.refs {
		if s := ref.symbol; s.root == rootThing || s.root == rootLocal {
			v.readers[s] = append(v.readers[s], r)
		}
	}
}

// part evaluates what reads the changed symbols, and returns the jobs that are
// not as they were. It reports false if that does not settle it, and then
// nothing that was found holds.
func (v *Evaluation) part(changed []symbol) ([]Job, bool) {
	stale, ok := v.forget(changed)
	if !ok {
		return nil, false
	}
	told := len(v.e.diags)
	order, _ := ordered(sortedKeys(stale.locals), func(name string) []string {
		var next []string
		for _, ref := range v.e.decls.locals[name].x.refs {
			if s := ref.symbol; s.root == rootLocal && stale.locals[s.name] {
				next = append(next, s.name)
			}
		}
		return next
	})
	for _, name := range order {
		v.e.locals[name] = v.e.eval(v.e.decls.locals[name].x, nil).val
		if len(v.e.diags) > told {
			return nil, false // it has no value
		}
	}
	for name := range stale.outputs {
		v.config.Outputs[name] = v.e.output(v.e.decls.outputs[name])
	}
	decls := slices.SortedFunc(maps.Keys(stale.decls), func(a, b *declaration) int { return cmp.Compare(v.first[a], v.first[b]) })
	var jobs []Job
	for _, decl := range decls {
		jobs = append(jobs, v.decode(decl)...)
	}
	return jobs, len(v.e.diags) == told
}

// decode decodes a declaration again and returns its jobs that changed.
func (v *Evaluation) decode(decl *declaration) []Job {
	var changed []Job
	jobs := v.config.Desired.Jobs[v.first[decl]:]
	for i, job := range v.e.jobs(decl) {
		if !slices.Equal(job.Command, jobs[i].Command) || !maps.Equal(job.Environment.Env, jobs[i].Environment.Env) {
			jobs[i] = job
			changed = append(changed, job)
		}
	}
	return changed
}

// stale is what is to be evaluated again.
type stale struct {
	locals, outputs map[string]bool
	decls           map[*declaration]bool
}

// forget drops what was made of symbols, directly or through locals. It reports
// false if they reach what only an evaluation of everything settles.
func (v *Evaluation) forget(changed []symbol) (stale, bool) {
	found := stale{map[string]bool{}, map[string]bool{}, map[*declaration]bool{}}
	for len(changed) > 0 {
		s := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		if s.root == rootThing {
			delete(v.e.objects, s.addr)
		}
		for _, r := range v.readers[s] {
			r.x.ctx, r.x.result, r.x.hoisted = nil, nil, nil
			switch {
			case r.decl != nil:
				found.decls[r.decl] = true
			case r.output != "":
				found.outputs[r.output] = true
			case r.local == "":
				return found, false
			case !found.locals[r.local]:
				found.locals[r.local] = true
				changed = append(changed, symbol{root: rootLocal, name: r.local})
			}
		}
	}
	return found, true
}
