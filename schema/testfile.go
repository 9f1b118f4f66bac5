package schema

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// TestEnding ends the names of files with tests. They are no part of the
// configuration that they stand beside.
const TestEnding = ".fraytest.hcl"

// TestFile is a file of tests of a configuration.
type TestFile struct {
	Path string // as the user knows it
	Runs []*TestRun

	source    *Source // the file alone
	variables *block
	overrides []*block
}

// TestRun plans or applies a configuration once and says what must hold of it.
type TestRun struct {
	Name    string
	Range   hcl.Range
	Apply   bool   // else it only plans
	Module  string // the directory of the configuration, relative to the tested one; "" for that itself
	Wait    TestWait
	Timeout time.Duration // of the apply; 0: the usual one
	Targets []Address
	Replace []Address
	Expect  []Expected

	moduleRange hcl.Range
	variables   *block
	asserts     []*block
	overrides   []*block
}

// TestWait is how far an apply follows what it started.
type TestWait string

// The waits: until everything runs or has ended, or until all jobs have ended.
const (
	WaitReady    TestWait = "ready"
	WaitComplete TestWait = "complete"
)

// Expected is something that a run expects to fail.
type Expected struct {
	Name  string // as in FailedCondition.Of; an address without a key stands for all its instances
	Range hcl.Range
}

// Covers reports whether it is the failure of a thing that is expected.
func (x Expected) Covers(of string) bool {
	if x.Name == of {
		return true
	}
	expected, err := ParseAddress(x.Name)
	if err != nil {
		return false
	}
	addr, err := ParseAddress(of)
	return err == nil && expected.Contains(addr)
}

// ParseTest reads a file of tests. The TestFile is never nil: its Files serve
// the diagnostics.
func ParseTest(path string) (*TestFile, hcl.Diagnostics) {
	f := &TestFile{Path: path, source: &Source{files: map[string]*hcl.File{}, disk: DiskFiles{}}}
	found, _, diags := discover(DiskFiles{}, path)
	if diags.HasErrors() || len(found) != 1 {
		return f, diags
	}
	r := &testReader{report: newReport(), source: f.source}
	body := r.structure(f.source.parseFiles(r.report, found), testType(), nil)
	f.variables, f.overrides = body.child("variables"), body.blocks["override_data"]
	r.overrides(f.overrides)
	names := map[string]*block{}
	r.declareNames(body.blocks["run"], names)
	for _, b := range body.blocks["run"] {
		f.Runs = append(f.Runs, r.run(b))
	}
	if len(f.Runs) == 0 && len(r.diags) == 0 {
		r.add(errorWithoutPlace("No tests", fmt.Sprintf("%s has no run block. Write run \"NAME\" { … } with assert blocks in it.", path)))
	}
	return f, r.sorted()
}

// Files returns what was read, for diagnostics.
func (f *TestFile) Files() map[string]*hcl.File { return f.source.Files() }

func testType() *blockType {
	variables := &blockType{name: "variables", doc: "values of variables: NAME = VALUE", open: true}
	override := &blockType{
		name: "override_data", repeated: true,
		doc: "what a data block reads, instead of what there is",
		attrs: []attribute{
			{name: "target", typ: "reference", required: true, doc: "the data block, data.KIND.NAME", mode: modeRaw},
			{name: "values", typ: "map", required: true, doc: "its attributes; of data \"outputs\", the outputs"},
		},
	}
	return &blockType{
		name: "the test file",
		blocks: []*blockType{variables, override, {
			name: "run", label: "NAME", repeated: true,
			doc: "plans or applies the configuration and looks at what comes of it",
			attrs: []attribute{
				{name: "command", typ: "plan or apply", def: "apply", doc: "what is done", mode: modeRaw},
				{name: "expect_failures", typ: "list of references", doc: "what must fail for the run to pass, such as [var.x, check.y, job.z]", mode: modeRaw},
				{name: "wait", typ: "string", def: "ready", doc: "follow what is applied until all is \"ready\", or all jobs are \"complete\"", mode: modeConstant},
				{name: "timeout", typ: "duration", def: "10m", doc: "how long an apply may take", mode: modeConstant},
			},
			blocks: []*blockType{
				variables, override,
				{name: "module", doc: "another configuration in its place", attrs: []attribute{
					{name: "source", typ: "string", required: true, doc: "its directory, ./DIR or ../DIR, relative to the tested configuration", mode: modeConstant},
				}},
				{name: "plan_options", doc: "what of it is planned", attrs: []attribute{
					{name: "target", typ: "list of addresses", def: "everything", doc: "only these and what they depend on", mode: modeRaw},
					{name: "replace", typ: "list of addresses", doc: "give these new slices and a fresh start", mode: modeRaw},
				}},
				conditionType("assert", "must hold; may refer to everything, and to output, run, plan, spec and logs"),
			},
		}},
	}
}

// testReader decodes what of a test file needs no values.
type testReader struct {
	*report
	source *Source
}

func (r *testReader) run(b *block) *TestRun {
	run := &TestRun{
		Name: b.name, Range: b.rng(), Apply: true, Wait: WaitReady,
		variables: b.child("variables"), asserts: b.blocks["assert"], overrides: b.blocks["override_data"],
	}
	r.overrides(run.overrides)
	if x := b.attr("command"); x != nil {
		switch hcl.ExprAsKeyword(x.expr) {
		case "plan":
			run.Apply = false
		case "apply":
		default:
			r.errorAt(x.expr.Range(), "Invalid value for command", "Write plan or apply, without quotes.")
		}
	}
	wait := TestWait(constantOr(r, b.attr("wait"), asString, string(WaitReady)))
	if run.Wait = wait; wait != WaitReady && wait != WaitComplete {
		r.errorAt(b.attr("wait").expr.Range(), "Invalid value for wait", `Write "ready" or "complete".`)
	}
	run.Timeout = time.Duration(constantOr(r, b.attr("timeout"), positiveDuration, 0))
	if x := b.child("module").attr("source"); x != nil {
		run.Module, run.moduleRange = constantOr(r, x, notEmpty, ""), x.expr.Range()
		if run.Module != "" && !isLocalModule(run.Module) {
			r.errorAt(run.moduleRange, "Invalid value for source", "Write a directory that starts with ./ or ../, relative to the tested configuration.")
		}
	}
	options := b.child("plan_options")
	run.Targets, run.Replace = r.addresses(options.attr("target")), r.addresses(options.attr("replace"))
	for _, x := range r.names(b.attr("expect_failures")) {
		root, _, _ := strings.Cut(x.Name, ".")
		if _, err := ParseAddress(x.Name); err != nil && !slices.Contains([]string{"var", "output", "check", "module"}, root) {
			r.errorAt(x.Range, "Invalid value for expect_failures", "Name what has a condition: a variable, an output, a check, or a job, service or reservation, such as var.x or job.y.")
		}
		run.Expect = append(run.Expect, x)
	}
	return run
}

// constantOr decodes an attribute that refers to nothing.
func constantOr[T any](r *testReader, x *expression, as converter[T], def T) T {
	if x == nil {
		return def
	}
	val, diags := x.expr.Value(nil)
	if diags.HasErrors() || !val.IsWhollyKnown() {
		r.errorAt(x.expr.Range(), "Invalid value for "+x.name, "Write a constant: it is read before there are values to refer to.")
		return def
	}
	if val.IsNull() {
		return def
	}
	v, err := as(val)
	if err != nil {
		r.errorAt(x.expr.Range(), "Invalid value for "+x.name, sentence(err.Error()))
		return def
	}
	return v
}

// names reads a list of references as it is written.
func (r *testReader) names(x *expression) []Expected {
	if x == nil {
		return nil
	}
	items, diags := hcl.ExprList(x.expr)
	if diags.HasErrors() {
		r.errorAt(x.expr.Range(), "Invalid value for "+x.name, "Write a list of references, without quotes, such as [job.train].")
		return nil
	}
	var names []Expected
	for _, item := range items {
		if name, ok := r.written(item); ok {
			names = append(names, Expected{Name: name, Range: item.Range()})
			continue
		}
		r.errorAt(item.Range(), "Invalid value for "+x.name, "Write a reference, without quotes, such as job.train.")
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

func (r *testReader) addresses(x *expression) []Address {
	var addrs []Address
	for _, name := range r.names(x) {
		addr, err := ParseAddress(name.Name)
		if err != nil {
			r.errorAt(name.Range, "Invalid value for "+x.name, sentence(err.Error()))
			continue
		}
		addrs = append(addrs, addr)
	}
	return addrs
}

// overrides checks that what is overridden is data.
func (r *testReader) overrides(blocks []*block) {
	for _, b := range blocks {
		x := b.attr("target")
		if x == nil {
			continue
		}
		if name, ok := r.written(x.expr); !ok || !strings.HasPrefix(name, "data.") && !strings.Contains(name, ".data.") {
			r.errorAt(x.expr.Range(), "Invalid value for target", "Name a data block, such as data.outputs.pools.")
		}
	}
}
