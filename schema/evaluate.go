package schema

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Options are what an evaluation takes from outside the files.
type Options struct {
	Given    []Given              // values of variables from the command line, in order
	Environ  []string             // FRAY_VAR_name=value are read from here
	Local    bool                 // map every provider, and the state, onto this machine
	Computed map[Address]Computed // values known only after apply, as far as known
	Version  string               // of the tool, checked against required_version; "" is not checked

	Workspace string // fray.workspace; "" is DefaultWorkspace
	Data      Reader // reads what data blocks name; nil: nothing is known of it
	Partial   bool   // variables without a value are unknown rather than an error

	Assigned  map[string]Assigned // values of variables over all others, by name
	Overrides map[string]Override // what data blocks read, by reference
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

// session is what the evaluators of one evaluation share.
type session struct {
	*report
	source *Source
	opts   Options

	maxInstances int  // of one declaration
	partial      bool // with Options.Partial: something is not known, and so left out
	total        int  // instances of everything so far

	full bool // there are too many
	size int  // of the values of locals, arguments and outputs

	all    []*module
	byPath map[string]*evaluator // by the path of the module instance
	order  []*evaluator          // parents before children, in key order
	rank   map[node]int          // in which nodes were evaluated
	base   *hcl.EvalContext      // functions

	reservations map[Address]*Reservation // nil for one that is wrong
	projects     map[string]string        // memo of project directories: what is wrong with each
	implied      ProviderName             // where capacity comes from unless stated
	gcp          Provider                 // the provider block of Google Cloud
}

// evaluator is the work of one evaluation on one instance of a module.
type evaluator struct {
	*session
	*report // of this instance
	mod     *module
	parent  *evaluator // nil for the root
	at      instance   // of the call
	path    string     // "module.a[0]", "" for the root
	decls   *declarations

	variables map[string]cty.Value
	given     map[string]*variable
	locals    map[string]cty.Value
	outputs   map[string]cty.Value
	objects   map[Address]cty.Value // memo of what references to things evaluate to
	data      map[string]cty.Value  // by KIND.NAME
	failed    map[symbol]bool       // has no value, and why is told already
	through   map[symbol][]Address  // what runs, and its value comes from
	groups    map[string]*JobGroup  // by name
	children  map[string][]*evaluator
	inherited []Address                     // what all in the module must wait for
	handed    map[ProviderName]ProviderName // nil: all as they are
}

// Evaluate expands a configuration: variables, references, instances,
// defaults. Every mistake is collected; with an error among them the Config is
// nil. Instances of one job may share slices and maps: copy before changing.
func (s *Source) Evaluate(opts Options) (*Config, hcl.Diagnostics) {
	return s.evaluate(opts, maxInstances)
}

func (s *Source) evaluate(opts Options, maxInstances int) (*Config, hcl.Diagnostics) {
	return s.session(opts, maxInstances).evaluate()
}

func (s *Source) session(opts Options, maxInstances int) *session {
	return &session{
		report:       newReport(),
		source:       s,
		opts:         opts,
		maxInstances: maxInstances,
		byPath:       map[string]*evaluator{},
		base:         &hcl.EvalContext{Functions: folder{s.disk, s.dir}.functions()},
		reservations: map[Address]*Reservation{},
		projects:     map[string]string{},
	}
}

func (s *session) root() *evaluator { return s.byPath[""] }

func (s *session) evaluate() (*Config, hcl.Diagnostics) {
	s.all = s.modules()
	root := s.evaluator(s.all[0], nil, instance{})
	for _, m := range s.all {
		if d := root.versionMismatch(m.decls.fray); d != nil {
			return nil, hcl.Diagnostics{d} // the rest may be mistaken for its consequences
		}
	}
	root.evaluateVariables()
	for _, m := range s.all {
		m.checkArguments()
		m.resolveAll()
	}
	s.evaluateNodes()
	s.jobDependencies()
	config := s.config()
	config.Partial = s.partial
	if s.diags.HasErrors() {
		return nil, s.sorted()
	}
	s.lint(config)
	return config, s.sorted()
}

// evaluator begins the work on an instance of a module. The first one has the
// module's own declarations, others copies of them.
func (s *session) evaluator(m *module, parent *evaluator, at instance) *evaluator {
	e := &evaluator{
		session: s, mod: m, parent: parent, at: at,
		decls:     m.decls,
		variables: map[string]cty.Value{},
		given:     map[string]*variable{},
		locals:    map[string]cty.Value{},
		outputs:   map[string]cty.Value{},
		objects:   map[Address]cty.Value{},
		data:      map[string]cty.Value{},
		failed:    map[symbol]bool{},
		through:   map[symbol][]Address{},
		groups:    map[string]*JobGroup{},
		children:  map[string][]*evaluator{},
	}
	e.report = s.report
	if parent != nil {
		e.path = joinModule(parent.path, m.name, at.key)
		e.handed = parent.handed
		e.report = s.in(e.path)
	}
	if len(m.instances) > 0 {
		e.decls = m.decls.clone()
	}
	m.instances = append(m.instances, e)
	s.byPath[e.path] = e
	s.order = append(s.order, e)
	return e
}

// DefaultWorkspace is the workspace of those who choose none.
const DefaultWorkspace = "default"

func (s *session) workspace() string { return cmp.Or(s.opts.Workspace, DefaultWorkspace) }

// global is an address of this module as the rest knows it.
func (e *evaluator) global(addr Address) Address {
	addr.Module = e.path
	return addr
}

// declared finds the declaration of an address anywhere, and where it is
// evaluated; nil if there is none.
func (s *session) declared(addr Address) (*evaluator, *declaration) {
	e := s.byPath[addr.Module]
	if e == nil {
		return nil, nil
	}
	return e, e.decls.things[thing(addr).addr]
}

// resolveAll finds the references of every expression of a module.
func (m *module) resolveAll() {
	plain := func(x *expression) { m.resolve(x, allowed{}) }
	for _, name := range sortedKeys(m.decls.locals) {
		plain(m.decls.locals[name].x)
	}
	m.decls.fray.walk(plain)
	m.decls.controller.walk(plain)
	for _, b := range m.decls.providers {
		b.walk(plain)
	}
	for _, b := range m.decls.imports {
		b.walk(plain)
	}
	for _, some := range []map[string]*block{m.decls.variables, m.decls.outputs} {
		for _, name := range sortedKeys(some) {
			some[name].walk(plain)
		}
	}
	for _, b := range m.decls.checks {
		for _, assert := range b.blocks["assert"] {
			assert.walk(func(x *expression) { m.resolve(x, allowed{check: b.name}) })
		}
	}
	for _, name := range sortedKeys(m.decls.calls) {
		m.resolveRepeated(m.decls.calls[name])
	}
	for _, name := range sortedKeys(m.decls.data) {
		m.resolveRepeated(m.decls.data[name])
	}
	for _, decl := range m.decls.sorted(Kinds()...) {
		if decl.addr.Kind == KindJobGroup {
			for _, name := range sortedKeys(decl.block.attrs) {
				plain(decl.block.attrs[name])
			}
			continue // its jobs are declarations of their own
		}
		m.resolveRepeated(decl)
	}
}

// resolveRepeated resolves what a declaration's instances may tell apart.
func (m *module) resolveRepeated(decl *declaration) {
	may := allowed{count: decl.repetition == counted, each: decl.repetition == keyed, check: decl.check}
	decl.block.walk(func(x *expression) {
		if x.mode == modeShape {
			m.resolve(x, allowed{check: decl.check})
			return
		}
		m.resolve(x, may)
	})
}

// config decodes everything that is declared.
func (s *session) config() *Config {
	c := &Config{Dir: s.source.dir, Ranges: map[string]hcl.Range{}, Blocks: map[string]Block{}, Outputs: map[string]Output{}}
	root := s.root()
	c.Settings = root.settings(root.decls.fray)
	s.implied, s.gcp = s.impliedProvider(), root.gcpProvider()
	d := &c.Desired
	for _, e := range s.order {
		for _, decl := range e.decls.sorted(KindNamespace) {
			d.Namespaces = append(d.Namespaces, e.namespace(decl))
		}
		for _, decl := range e.decls.sorted(KindReservation) {
			if r, ok := e.reservation(decl); ok {
				s.reservations[r.Addr] = &r
				d.Reservations = append(d.Reservations, r)
			}
		}
		for _, decl := range e.decls.sorted(KindJobGroup) {
			g := e.jobGroup(decl)
			e.groups[decl.addr.Name] = &g
			d.Groups = append(d.Groups, g)
		}
	}
	for _, e := range s.order {
		for _, decl := range e.decls.sorted(KindJob, KindActorService) {
			d.Jobs = append(d.Jobs, e.jobs(decl)...)
		}
	}
	if len(s.order) > 1 {
		sortByAddress(d)
	}
	s.checkGroups(d.Jobs)
	d.Controller = root.controller()
	d.Local = root.opts.Local
	for _, name := range root.decls.variableNames() {
		if isEphemeral(root.variables[name]) {
			c.Ephemeral = append(c.Ephemeral, name)
		}
	}
	c.Variables = root.variableValues()
	d.Providers = root.providers(d)
	for _, name := range sortedKeys(root.decls.outputs) {
		c.Outputs[name] = root.output(root.decls.outputs[name])
	}
	for _, e := range s.order {
		e.transfers(c)
		c.Conditions = append(c.Conditions, e.conditions()...)
		e.ranges(c.Ranges)
		e.blocks(c.Blocks)
	}
	return c
}

// sortByAddress puts what several modules declare into one order.
func sortByAddress(d *Desired) {
	slices.SortFunc(d.Namespaces, func(a, b Namespace) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Reservations, func(a, b Reservation) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Groups, func(a, b JobGroup) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Jobs, func(a, b Job) int { return a.Addr.Compare(b.Addr) })
}

// ranges records where everything with an address stands.
func (e *evaluator) ranges(into map[string]hcl.Range) {
	for addr, decl := range e.decls.things {
		name := e.global(addr).String()
		into[name] = decl.block.rng()
		attributeRanges(into, name+"#", decl.block)
	}
	if e.parent != nil {
		into[e.path] = e.mod.call().rng()
		return
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
	cwd, err := e.source.disk.WorkDir()
	if err != nil {
		cwd = e.source.dir
	}
	return cty.ObjectVal(map[string]cty.Value{
		"module": cty.StringVal(e.mod.files.dir),
		"root":   cty.StringVal(e.source.dir),
		"cwd":    cty.StringVal(cwd),
	})
}

// absolute resolves a path of the files, relative to the configuration: a path
// that a module was given means the same as where it was written.
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
