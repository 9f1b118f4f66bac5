package schema

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Options are what an evaluation takes from outside the files.
type Options struct {
	Vars     []string             // "name=value" from --var, in order
	VarFiles []string             // --var-file, in order
	Environ  []string             // FRAY_VAR_name=value are read from here
	Local    bool                 // map every provider, and the state, onto this machine
	Computed map[Address]Computed // values known only after apply, as far as known
	Version  string               // of the tool, checked against required_version; "" is not checked
}

// Computed holds one instance's values that are known only after apply. What
// is empty is not known yet.
type Computed struct {
	ID        string         // job id
	Addresses []string       // of the tasks, in task order
	Ports     map[string]int // of task 0
	Slices    []string       // names
	Status    JobStatus
}

// evaluator is the work of one evaluation.
type evaluator struct {
	*report
	source *Source
	opts   Options
	root   *block
	decls  *declarations

	maxInstances int // of one declaration

	base      *hcl.EvalContext // functions
	variables map[string]cty.Value
	locals    map[string]cty.Value
	objects   map[Address]cty.Value // memo of what references to things evaluate to
	failed    map[symbol]bool       // has no value, and why is told already

	reservations map[string]*Reservation // by name; nil for one that is wrong
	groups       map[string]*JobGroup    // by name
	projects     map[string]string       // memo of project directories: what is wrong with each
	implied      ProviderName            // where capacity comes from unless stated
	refused      map[ProviderName]bool   // used, and refused for it
}

// Evaluate expands a configuration: variables, references, instances,
// defaults. Every mistake is collected; with an error among them the Config is
// nil. Instances of one job may share slices and maps: copy before changing.
func (s *Source) Evaluate(opts Options) (*Config, hcl.Diagnostics) {
	return s.evaluate(opts, maxInstances)
}

func (s *Source) evaluate(opts Options, maxInstances int) (*Config, hcl.Diagnostics) {
	return s.evaluator(opts, maxInstances).evaluate()
}

func (e *evaluator) evaluate() (*Config, hcl.Diagnostics) {
	e.root = e.structure(e.source.bodies, language(), nil)
	if d := e.versionMismatch(); d != nil {
		return nil, hcl.Diagnostics{d} // the rest may be mistaken for its consequences
	}
	e.decls = e.declare(e.root)
	e.variables = e.evaluateVariables()
	e.resolveAll()
	e.evaluateSymbols()
	e.jobDependencies()
	config := e.config()
	diags := e.sorted()
	if diags.HasErrors() {
		return nil, diags
	}
	return config, diags
}

func (s *Source) evaluator(opts Options, maxInstances int) *evaluator {
	e := &evaluator{
		report:       newReport(),
		maxInstances: maxInstances,
		source:       s,
		opts:         opts,
		locals:       map[string]cty.Value{},
		objects:      map[Address]cty.Value{},
		failed:       map[symbol]bool{},
		reservations: map[string]*Reservation{},
		groups:       map[string]*JobGroup{},
		projects:     map[string]string{},
		refused:      map[ProviderName]bool{},
	}
	e.base = &hcl.EvalContext{Functions: functions(s.dir)}
	return e
}

// resolveAll finds the references of every expression.
func (e *evaluator) resolveAll() {
	plain := func(x *expression) { e.resolve(x, allowed{}) }
	for _, name := range sortedKeys(e.decls.locals) {
		plain(e.decls.locals[name].x)
	}
	e.decls.fray.walk(plain)
	e.decls.controller.walk(plain)
	for _, b := range e.decls.providers {
		b.walk(plain)
	}
	for _, name := range sortedKeys(e.decls.outputs) {
		e.decls.outputs[name].walk(plain)
	}
	for _, decl := range e.decls.sorted(Kinds()...) {
		may := allowed{count: decl.repetition == counted, each: decl.repetition == keyed}
		visit := func(x *expression) {
			if x.mode == modeShape {
				plain(x)
				return
			}
			e.resolve(x, may)
		}
		if decl.addr.Kind == KindJobGroup {
			for _, name := range sortedKeys(decl.block.attrs) {
				plain(decl.block.attrs[name])
			}
			continue // its jobs are declarations of their own
		}
		decl.block.walk(visit)
	}
}

// config decodes everything that is declared.
func (e *evaluator) config() *Config {
	c := &Config{Dir: e.source.dir, Ranges: map[string]hcl.Range{}, Outputs: map[string]Output{}}
	c.Settings = e.settings(e.decls.fray)
	e.implied = e.impliedProvider()
	for _, decl := range e.decls.sorted(KindNamespace) {
		c.Desired.Namespaces = append(c.Desired.Namespaces, e.namespace(decl))
	}
	for _, decl := range e.decls.sorted(KindReservation) {
		if r, ok := e.reservation(decl); ok {
			e.reservations[decl.addr.Name] = &r
			c.Desired.Reservations = append(c.Desired.Reservations, r)
		}
	}
	for _, decl := range e.decls.sorted(KindJobGroup) {
		g := e.jobGroup(decl)
		e.groups[decl.addr.Name] = &g
		c.Desired.Groups = append(c.Desired.Groups, g)
	}
	for _, decl := range e.decls.sorted(KindJob, KindActorService) {
		c.Desired.Jobs = append(c.Desired.Jobs, e.jobs(decl)...)
	}
	e.checkGroups(c.Desired.Jobs)
	c.Desired.Controller = e.controller()
	c.Desired.Providers = e.providers(&c.Desired)
	for _, name := range sortedKeys(e.decls.outputs) {
		c.Outputs[name] = e.output(e.decls.outputs[name])
	}
	e.ranges(c.Ranges)
	return c
}

// ranges records where everything with an address stands.
func (e *evaluator) ranges(into map[string]hcl.Range) {
	for addr, decl := range e.decls.things {
		into[addr.String()] = decl.block.rng()
		attributeRanges(into, addr.String()+"#", decl.block)
	}
	for name, b := range e.decls.outputs {
		into["output."+name] = b.rng()
	}
	for name, b := range e.decls.providers {
		into["provider."+string(name)] = b.rng()
		attributeRanges(into, "provider."+string(name)+"#", b)
	}
	if b := e.decls.controller; b != nil {
		into["controller"] = b.rng()
	}
	if b := e.decls.fray; b != nil {
		into["fray"] = b.rng()
		attributeRanges(into, "fray#", b)
	}
}

func attributeRanges(into map[string]hcl.Range, prefix string, b *block) {
	for name, x := range b.attrs {
		into[prefix+name] = x.rng
	}
	for name, children := range b.blocks {
		if children[0].typ.repeated {
			continue // has an address of its own
		}
		into[prefix+name] = children[0].rng()
		attributeRanges(into, prefix+name+".", children[0])
	}
}

func (e *evaluator) paths() cty.Value {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = e.source.dir
	}
	return cty.ObjectVal(map[string]cty.Value{
		"module": cty.StringVal(e.source.dir),
		"root":   cty.StringVal(e.source.dir),
		"cwd":    cty.StringVal(cwd),
	})
}

// absolute resolves a path of the files, relative to the configuration.
func (e *evaluator) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.source.dir, path)
}

func sortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }

func cutPrefixes(environ []string, prefix string) map[string]string {
	found := map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if rest, has := strings.CutPrefix(name, prefix); ok && has && rest != "" {
			found[rest] = value
		}
	}
	return found
}
