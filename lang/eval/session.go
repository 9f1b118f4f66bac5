package eval

import (
	"cmp"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// Session is what the evaluators of one evaluation share.
type Session struct {
	Reporter
	Source  *load.Source
	Options Options

	maxInstances int  // of one declaration
	Partial      bool // with Options.Partial: something is not known, and so left out
	Momentary    bool // something may be another value in each plan or apply
	total        int  // instances of everything so far

	full bool // there are too many
	size int  // of the values of locals, arguments and outputs

	Modules   []*configs.Module
	instances map[*configs.Module][]*Evaluator // once expanded
	ByPath    map[string]*Evaluator            // by the path of the module instance
	Order     []*Evaluator                     // parents before children, in key order
	Rank      map[configs.Node]int             // in which nodes were evaluated
	Base      *hcl.EvalContext                 // functions
}

// Evaluator is the work of one evaluation on one instance of a module.
type Evaluator struct {
	*Session
	Reporter // of this instance
	Constants
	Module *configs.Module
	Parent *Evaluator       // nil for the root
	at     configs.Instance // of the call
	Path   string           // "module.a[0]", "" for the root
	Decls  *configs.Declarations

	Variables map[string]cty.Value
	locals    map[string]cty.Value
	outputs   map[string]cty.Value
	Objects   map[schema.Address]cty.Value        // memo of the values of declared objects
	data      map[string]cty.Value                // by KIND.NAME
	failed    map[configs.Symbol]bool             // has no value, for a reason that is reported already
	through   map[configs.Symbol][]schema.Address // what runs, and its value comes from
	Children  map[string][]*Evaluator
	inherited []schema.Address // what all in the module must wait for
	Handed    Providers
}

// NewSession begins an evaluation.
func NewSession(source *load.Source, opts Options, maxInstances int) *Session {
	s := &Session{
		Reporter:     Reporter{Report: diagnose.NewUntil(opts.Canceled)},
		Source:       source,
		Options:      opts,
		maxInstances: maxInstances,
		instances:    map[*configs.Module][]*Evaluator{},
		ByPath:       map[string]*Evaluator{},
		Base:         &hcl.EvalContext{Functions: funcs.In(source.Folder(), opts.Moment)},
	}
	if opts.Partial {
		s.omitted = &s.Partial
	}
	return s
}

// CanceledError is what stands for the result of an evaluation that was canceled.
func CanceledError() *hcl.Diagnostic {
	return diagnose.WithoutPlace("Canceled", "The evaluation was canceled before its end.")
}

// Root evaluates the root module.
func (s *Session) Root() *Evaluator { return s.ByPath[""] }

func (s *Session) workspace() string { return cmp.Or(s.Options.Workspace, schema.DefaultWorkspace) }

// Global is an address of this module as the rest knows it.
func (e *Evaluator) Global(addr schema.Address) schema.Address {
	addr.Module = e.Path
	return addr
}

// Declared finds the declaration of an address anywhere, and where it is
// evaluated; nil if there is none.
func (s *Session) Declared(addr schema.Address) (*Evaluator, *configs.Declaration) {
	e := s.ByPath[addr.Module]
	if e == nil {
		return nil, nil
	}
	return e, e.Decls.Addressed[configs.SymbolOf(addr).Addr]
}

// paths are the directories that a module can refer to.
func (s *Session) paths(m *configs.Module) cty.Value {
	cwd, err := s.Source.Disk.WorkDir()
	if err != nil {
		cwd = s.Source.Dir()
	}
	return cty.ObjectVal(map[string]cty.Value{
		"module": cty.StringVal(m.Files.Dir),
		"root":   cty.StringVal(s.Source.Dir()),
		"cwd":    cty.StringVal(cwd),
	})
}

// Absolute resolves a path of the files, relative to the configuration: a path
// that a module was given means the same as where it was written.
func (s *Session) Absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Source.Dir(), path)
}

// CallBlock is the block that calls this instance of the module.
func (e *Evaluator) CallBlock() *configs.Block { return e.Parent.Decls.Calls[e.Module.Name].Block }

// NewEvaluator begins the work on an instance of a module. The first one has the
// module's own declarations, others copies of them.
func (s *Session) NewEvaluator(m *configs.Module, parent *Evaluator, at configs.Instance) *Evaluator {
	e := &Evaluator{
		Session: s, Module: m, Parent: parent, at: at,
		Decls:     m.Decls,
		Variables: map[string]cty.Value{},
		locals:    map[string]cty.Value{},
		outputs:   map[string]cty.Value{},
		Objects:   map[schema.Address]cty.Value{},
		data:      map[string]cty.Value{},
		failed:    map[configs.Symbol]bool{},
		through:   map[configs.Symbol][]schema.Address{},
		Children:  map[string][]*Evaluator{},
	}
	e.Reporter = s.Reporter
	if parent != nil {
		e.Path = schema.JoinModule(parent.Path, m.Name, at.Key)
		e.Handed = parent.Handed
		e.Reporter = s.in(e.Path)
	}
	e.Constants = Constants{report: e.Reporter, functions: s.Base}
	if len(s.instances[m]) > 0 {
		e.Decls = m.Decls.Clone()
	}
	s.instances[m] = append(s.instances[m], e)
	s.ByPath[e.Path] = e
	s.Order = append(s.Order, e)
	return e
}

// Apart is a copy that reports by itself. It may evaluate an expression for one instance while
// others evaluate it for other instances, once it was evaluated for one.
func (e *Evaluator) Apart() *Evaluator {
	session, own := *e.Session, *e
	own.Session, own.Reporter = &session, Reporter{Report: diagnose.New()}
	own.Constants.report = own.Reporter
	return &own
}
