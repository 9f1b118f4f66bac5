package testruns

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/testfile"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// testedFile runs the tests of one file, in order.
type testedFile struct {
	*tester
	report *fileReport
	path   string
	name   string // of its stacks
	file   *testfile.File
	stacks []*testStack // in the order in which they were first used
	runs   map[string]cty.Value
}

// testStack is a configuration with the state that the runs of one file share.
type testStack struct {
	module string
	src    *lang.Source
	site   stack.Site // its state and its slices are in a directory of the tests'
	doc    *state.Document
	last   *configuration.Loaded // of the last apply; nil: nothing was applied
}

func newTestedFile(t *tester, report *fileReport, path, name string) *testedFile {
	return &testedFile{tester: t, report: report, path: path, name: name, runs: map[string]cty.Value{}}
}

func (f *testedFile) run() {
	var diags hcl.Diagnostics
	f.file, diags = testfile.Parse(f.path)
	if f.report.problems(f.file.Files(), diags); diags.HasErrors() {
		return
	}
	defer f.tearDown()
	broken := false
	for _, run := range f.file.Runs {
		result := testResult{run: run.Name, status: testSkipped}
		if !broken && f.soft.Err() == nil {
			f.report.begin(run.Name)
			result = f.one(run)
		}
		f.report.run(result)
		broken = broken || result.status == testError
	}
}

// one carries one run out.
func (f *testedFile) one(run *testfile.Run) testResult {
	began := time.Now()
	r := &testRun{testedFile: f, run: run, files: f.file.Files(), expected: make([]bool, len(run.Expect))}
	if r.test(); !r.broken {
		r.missing()
	}
	return testResult{
		run: run.Name, status: r.status(), took: time.Since(began),
		diags: r.diags, files: r.files, details: r.details.String(),
	}
}

// stack is the stack of the configuration that a run tests.
func (f *testedFile) stack(module string) (*testStack, hcl.Diagnostics) {
	for _, s := range f.stacks {
		if s.module == module {
			return s, nil
		}
	}
	s := &testStack{module: module, src: f.src}
	if module != "" {
		var diags hcl.Diagnostics
		if s.src, diags = configuration.Parse([]string{filepath.Join(f.dir, module)}); diags.HasErrors() {
			return s, diags
		}
	}
	s.site = f.site.stack(s.src.Dir(), f.name, len(f.stacks))
	f.stacks = append(f.stacks, s)
	return s, nil
}

// tearDown destroys what the runs applied, the last stack first, and by force
// what cannot be destroyed by its plan.
func (f *testedFile) tearDown() {
	slices.Reverse(f.stacks)
	for _, s := range f.stacks {
		if s.last == nil || f.hard.Err() != nil {
			continue
		}
		f.report.tearingDown()
		err := s.destroy(f.hard)
		if err == nil {
			_, err = takeDownSlices(f.hard, s.site.Settings.Backend.Path) // of what was never recorded
		} else if _, forced := takeDownSlices(f.hard, s.site.Settings.Backend.Path); forced == nil {
			err = fmt.Errorf("%w; everything was ended by force", err)
		}
		if err != nil && f.hard.Err() == nil {
			f.report.problems(nil, hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "Not taken down in order", Detail: configuration.DetailOf(err),
			}})
		}
	}
}

// destroy takes down what was applied. An interruption does not keep it from
// that.
func (s *testStack) destroy(hard context.Context) error {
	flags := &rollout.Options{AutoApprove: true, Parallelism: testParallelism, Timeout: takeDownPatience, Wait: rollout.WaitReady}
	l := &configuration.Loaded{Stack: s.last.Stack, Document: s.doc, Sealer: s.last.Sealer, Config: &schema.Config{}}
	var output bytes.Buffer
	r := &rollout.Rollout{Terminal: quietApp(&output), Options: flags, Loaded: l, Destroying: true}
	r.Change = &proposal.Change{Desired: func(doc *state.Document) schema.Desired {
		return schema.Desired{Providers: doc.Desired.Providers}
	}}
	_, err := r.CarryOut(hard, hard, nil)
	return printed(err, &output)
}

// testParallelism is how many operations an apply of a test has at once.
const testParallelism = 32

// planned is what a run's plan does to each address, for plan["ADDRESS"].
func planned(p *plan.Plan) cty.Value {
	vals := make(map[string]cty.Value, len(p.Changes))
	for _, c := range p.Changes {
		changed := []cty.Value{}
		for _, a := range c.Attrs {
			if a.Verb != plan.VerbNone {
				changed = append(changed, cty.StringVal(a.Path))
			}
		}
		vals[c.Addr.String()] = cty.ObjectVal(map[string]cty.Value{
			"action": cty.StringVal(string(c.Verb)), "reason": cty.StringVal(c.Reason), "changed": cty.TupleVal(changed),
		})
	}
	return cty.ObjectVal(vals)
}

// logsOf is what the tasks of each job's last attempt wrote, for logs["ADDRESS"].
func logsOf(ctx context.Context, l *configuration.Loaded, doc *state.Document) (cty.Value, error) {
	vals := map[string]cty.Value{}
	for addr, j := range doc.Jobs {
		var text strings.Builder
		if last := j.Last(); last != nil {
			for n := range last.Tasks {
				written, err := taskLog(ctx, l.Stack.Store, store.LogName{Job: j.ID, Attempt: last.Number, Task: n})
				if err != nil {
					return cty.NilVal, err
				}
				text.WriteString(written)
			}
		}
		vals[addr.String()] = cty.StringVal(text.String())
	}
	return cty.ObjectVal(vals), nil
}
