package testfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// File is a file of tests of a configuration.
type File struct {
	Path string // as the user knows it
	Runs []*Run

	source    *load.Source // the file alone
	variables *configs.Block
	overrides []*configs.Block
}

// Run plans or applies a configuration once, and has assertions about the result.
type Run struct {
	Name    string
	Range   hcl.Range
	Apply   bool   // else it only plans
	Module  string // the directory of the configuration, relative to the tested one; "" for that itself
	Wait    Wait
	Timeout time.Duration // of the apply; 0: the usual one
	Targets []schema.Address
	Replace []schema.Address
	Expect  []Expected

	moduleRange hcl.Range
	variables   *configs.Block
	asserts     []*configs.Block
	overrides   []*configs.Block
}

// Wait is how far an apply follows what it started.
type Wait string

// The waits: until everything runs or has ended, or until all jobs have ended.
const (
	WaitReady    Wait = "ready"
	WaitComplete Wait = "complete"
)

// Expected is something that a run expects to fail.
type Expected struct {
	Name  string // as in FailedCondition.Of; an address without a key stands for all its instances
	Range hcl.Range
}

// Covers reports whether the failure of a condition of that object is expected.
func (x Expected) Covers(of string) bool {
	if x.Name == of {
		return true
	}
	expected, err := schema.ParseAddress(x.Name)
	if err != nil {
		return false
	}
	addr, err := schema.ParseAddress(of)
	return err == nil && expected.Contains(addr)
}

// Parse reads a file of tests. The TestFile is never nil: its Files serve
// the diagnostics.
func Parse(path string) (*File, hcl.Diagnostics) {
	f := &File{Path: path, source: load.Empty(filepath.Dir(path))}
	found, _, diags := load.Discover(files.Disk{}, path)
	if diags.HasErrors() || len(found) != 1 {
		return f, diags
	}
	r := &testReader{Report: diagnose.New(), source: f.source}
	check := configs.Checker{Report: r.Report}
	body := check.Structure(f.source.ParseFiles(r.Report, found), Type(), nil)
	f.variables, f.overrides = body.Child("variables"), body.Blocks["override_data"]
	r.overrides(f.overrides)
	names := map[string]*configs.Block{}
	check.DeclareNames(body.Blocks["run"], names)
	for _, b := range body.Blocks["run"] {
		f.Runs = append(f.Runs, r.run(b))
	}
	if len(f.Runs) == 0 && len(r.Diags) == 0 {
		r.Add(diagnose.WithoutPlace("No tests", fmt.Sprintf("%s has no run block. Write run \"NAME\" { … } with assert blocks in it.", path)))
	}
	return f, r.Sorted()
}

// Files returns what was read, for diagnostics.
func (f *File) Files() map[string]*hcl.File { return f.source.Files() }

// Type is the root of the table of test files.
func Type() *language.BlockType {
	variables := &language.BlockType{Name: "variables", Doc: "values of variables: NAME = VALUE", Open: true}
	override := &language.BlockType{
		Name: "override_data", Repeated: true,
		Doc: "what a data block reads, instead of what there is",
		Attrs: []language.Attribute{
			{Name: "target", Type: "reference", Required: true, Doc: "the data block, data.KIND.NAME", Mode: language.ModeRaw},
			{Name: "values", Type: "map", Required: true, Doc: "its attributes; of data \"outputs\", the outputs"},
		},
	}
	return &language.BlockType{
		Name: "the test file",
		Blocks: []*language.BlockType{variables, override, {
			Name: "run", Label: "NAME", Repeated: true,
			Doc: "plans or applies the configuration and checks the result",
			Attrs: []language.Attribute{
				{Name: "command", Type: "plan or apply", Default: "apply", Doc: "what is done", Mode: language.ModeRaw},
				{Name: "expect_failures", Type: "list of references", Doc: "what must fail for the run to pass, such as [var.x, check.y, job.z]", Mode: language.ModeRaw},
				{Name: "wait", Type: "string", Default: "ready", Doc: "follow what is applied until all is \"ready\", or all jobs are \"complete\"", Mode: language.ModeConstant},
				{Name: "timeout", Type: "duration", Default: "10m", Doc: "how long an apply may take", Mode: language.ModeConstant},
			},
			Blocks: []*language.BlockType{
				variables, override,
				{Name: "module", Doc: "another configuration in its place", Attrs: []language.Attribute{
					{Name: "source", Type: "string", Required: true, Doc: "its directory, ./DIR or ../DIR, relative to the tested configuration", Mode: language.ModeConstant},
				}},
				{Name: "plan_options", Doc: "what of it is planned", Attrs: []language.Attribute{
					{Name: "target", Type: "list of addresses", Default: "everything", Doc: "only these and what they depend on", Mode: language.ModeRaw},
					{Name: "replace", Type: "list of addresses", Doc: "give these new slices and a fresh start", Mode: language.ModeRaw},
				}},
				language.ConditionType("assert", "must hold; may refer to everything, and to output, run, plan, spec and logs"),
			},
		}},
	}
}

// testReader decodes what of a test file needs no values.
type testReader struct {
	*diagnose.Report
	source *load.Source
}

func (r *testReader) run(b *configs.Block) *Run {
	run := &Run{
		Name: b.Name, Range: b.Range(), Apply: true, Wait: WaitReady,
		variables: b.Child("variables"), asserts: b.Blocks["assert"], overrides: b.Blocks["override_data"],
	}
	r.overrides(run.overrides)
	if x := b.Attr("command"); x != nil {
		switch hcl.ExprAsKeyword(x.Expr) {
		case "plan":
			run.Apply = false
		case "apply":
		default:
			r.ErrorAt(x.Expr.Range(), "Invalid value for command", "Write plan or apply, without quotes.")
		}
	}
	wait := Wait(constantOr(r, b.Attr("wait"), as.String, string(WaitReady)))
	if run.Wait = wait; wait != WaitReady && wait != WaitComplete {
		r.ErrorAt(b.Attr("wait").Expr.Range(), "Invalid value for wait", `Write "ready" or "complete".`)
	}
	run.Timeout = time.Duration(constantOr(r, b.Attr("timeout"), as.PositiveDuration, 0))
	if x := b.Child("module").Attr("source"); x != nil {
		run.Module, run.moduleRange = constantOr(r, x, as.NotEmpty, ""), x.Expr.Range()
		if run.Module != "" && !load.IsLocalModule(run.Module) {
			r.ErrorAt(run.moduleRange, "Invalid value for source", "Write a directory that starts with ./ or ../, relative to the tested configuration.")
		}
	}
	options := b.Child("plan_options")
	run.Targets, run.Replace = r.addresses(options.Attr("target")), r.addresses(options.Attr("replace"))
	for _, x := range r.names(b.Attr("expect_failures")) {
		root, _, _ := strings.Cut(x.Name, ".")
		if _, err := schema.ParseAddress(x.Name); err != nil && !slices.Contains([]string{"var", "output", "check", "module"}, root) {
			r.ErrorAt(x.Range, "Invalid value for expect_failures", "Name what has a condition: a variable, an output, a check, or a job, service or reservation, such as var.x or job.y.")
		}
		run.Expect = append(run.Expect, x)
	}
	return run
}

// constantOr decodes an attribute that refers to nothing.
func constantOr[T any](r *testReader, x *configs.Expression, as as.Converter[T], def T) T {
	if x == nil {
		return def
	}
	val, diags := x.Expr.Value(nil)
	if diags.HasErrors() || !val.IsWhollyKnown() {
		r.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Write a constant: it is read before there are values to refer to.")
		return def
	}
	if val.IsNull() {
		return def
	}
	v, err := as(val)
	if err != nil {
		r.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, diagnose.Sentence(err.Error()))
		return def
	}
	return v
}

// names reads a list of references as it is written.
func (r *testReader) names(x *configs.Expression) []Expected {
	if x == nil {
		return nil
	}
	items, diags := hcl.ExprList(x.Expr)
	if diags.HasErrors() {
		r.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Write a list of references, without quotes, such as [job.train].")
		return nil
	}
	var names []Expected
	for _, item := range items {
		if name, ok := r.written(item); ok {
			names = append(names, Expected{Name: name, Range: item.Range()})
			continue
		}
		r.ErrorAt(item.Range(), "Invalid value for "+x.Name, "Write a reference, without quotes, such as job.train.")
	}
	return names
}

// written is a reference as it is written.
func (r *testReader) written(expr hcl.Expression) (string, bool) {
	traversal, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() || len(traversal) < 2 {
		return "", false
	}
	src := expr.Range().SliceBytes(r.source.Files()[expr.Range().Filename].Bytes)
	return strings.Join(strings.Fields(string(src)), ""), true
}

func (r *testReader) addresses(x *configs.Expression) []schema.Address {
	var addrs []schema.Address
	for _, name := range r.names(x) {
		addr, err := schema.ParseAddress(name.Name)
		if err != nil {
			r.ErrorAt(name.Range, "Invalid value for "+x.Name, diagnose.Sentence(err.Error()))
			continue
		}
		addrs = append(addrs, addr)
	}
	return addrs
}

// overrides checks that what is overridden is data.
func (r *testReader) overrides(blocks []*configs.Block) {
	for _, b := range blocks {
		x := b.Attr("target")
		if x == nil {
			continue
		}
		if name, ok := r.written(x.Expr); !ok || !strings.HasPrefix(name, "data.") && !strings.Contains(name, ".data.") {
			r.ErrorAt(x.Expr.Range(), "Invalid value for target", "Name a data block, such as data.outputs.pools.")
		}
	}
}
