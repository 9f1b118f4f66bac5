package testruns

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/testfile"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// testRun is one run while it is carried out.
type testRun struct {
	*testedFile
	run      *testfile.Run
	files    map[string]*hcl.File // for diagnostics
	expected []bool               // which of the expected failures were seen
	diags    hcl.Diagnostics
	failing  bool         // something did not hold
	broken   bool         // something could not be done
	details  bytes.Buffer // for --verbose
}

func (r *testRun) status() testStatus {
	switch {
	case r.broken:
		return testError
	case r.failing:
		return testFailed
	}
	return testPassed
}

// stop reports why the run cannot go on.
func (r *testRun) stop(diags hcl.Diagnostics) {
	r.diags = append(r.diags, diags...)
	r.broken = true
}

func (r *testRun) stopWith(summary string, err error) {
	rng := r.run.Range
	r.stop(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: configuration.DetailOf(err), Subject: &rng}})
}

// test evaluates, plans, applies if it is to, and asserts.
func (r *testRun) test() {
	st, diags := r.stack(r.run.Module)
	maps.Copy(r.files, st.src.Files())
	if diags.HasErrors() {
		r.stop(diags)
		return
	}
	given, diags := r.file.Values(r.run, st.src, r.runs)
	if diags.HasErrors() {
		r.stop(diags)
		return
	}
	opts := r.flags.InWorkspace(r.flags.Workspace)
	opts.Local, opts.Assigned, opts.Overrides = true, given.Assigned, given.Overrides
	opts.Data = (&configuration.StackReader{Here: st.site}).Anew(r.soft)
	if st.doc != nil {
		opts.Computed = st.doc.Computed()
	}
	scope, ok := r.evaluate(st, opts)
	if !ok {
		return
	}
	roots := map[string]eval.Late{"run": late(cty.ObjectVal(r.runs))}
	for _, name := range []string{"plan", "spec", "logs"} {
		roots[name] = func() (cty.Value, error) {
			return cty.NilVal, fmt.Errorf("there is no %s, because the configuration has errors", name)
		}
	}
	if cfg := scope.Config(); cfg != nil {
		if scope, ok = r.carryOut(st, scope, opts, roots); !ok {
			return
		}
	}
	r.conclude(scope.With(roots))
}

func late(v cty.Value) eval.Late { return func() (cty.Value, error) { return v, nil } }

// evaluate evaluates the configuration. Without ok there is nothing to go on with.
func (r *testRun) evaluate(st *testStack, opts eval.Options) (*eval.Scope, bool) {
	scope, diags := st.src.Scope(opts)
	maps.Copy(r.files, st.src.Files())
	rest, conditions := r.partition(diags)
	rest = terminal.ErrorsOf(rest)
	switch {
	case scope.Config() != nil || conditions.HasErrors():
	case rest.HasErrors() && slices.Contains(r.expected, true):
		return scope, false // by what was expected, the rest came about
	case rest.HasErrors():
		r.stop(rest)
		return scope, false
	}
	r.diags = append(r.diags, append(rest, conditions...)...)
	r.failing = r.failing || conditions.HasErrors()
	return scope, true
}

// partition removes the failures that are expected, and separates the failed conditions
// that are not. A failed check is only a warning elsewhere; a test is there to find it.
func (r *testRun) partition(diags hcl.Diagnostics) (rest, conditions hcl.Diagnostics) {
	for _, d := range diags {
		failed, ok := hcl.DiagnosticExtra[diagnose.FailedCondition](d)
		switch {
		case !ok:
			rest = append(rest, d)
		case !r.expects(failed.Of):
			unexpected := *d
			unexpected.Severity = hcl.DiagError
			conditions = append(conditions, &unexpected)
		}
	}
	return rest, conditions
}

// expects reports whether something is expected to fail, and notes that it has.
func (r *testRun) expects(of string) bool {
	found := false
	for i, x := range r.run.Expect {
		if x.Covers(of) {
			r.expected[i], found = true, true
		}
	}
	return found
}

// carryOut plans, applies if it is to, and returns the configuration with what
// is known then.
func (r *testRun) carryOut(st *testStack, scope *eval.Scope, opts eval.Options, roots map[string]eval.Late) (*eval.Scope, bool) {
	l, ok := r.load(st, scope.Config(), opts)
	if !ok {
		return nil, false
	}
	c, p, ok := r.plan(l)
	if !ok {
		return nil, false
	}
	if r.run.Apply {
		if !r.apply(st, l, c, p) {
			return nil, false
		}
		opts.Computed = st.doc.Computed()
		if scope, ok = r.evaluate(st, opts); !ok {
			return nil, false
		}
	}
	roots["plan"] = late(planned(p))
	if cfg := scope.Config(); cfg != nil {
		roots["spec"] = func() (cty.Value, error) { return lang.SpecValues(&cfg.Desired), nil }
	}
	roots["logs"] = func() (cty.Value, error) {
		if st.last == nil {
			return cty.UnknownVal(cty.Map(cty.String)), nil
		}
		return logsOf(r.hard, st.last, st.doc)
	}
	return scope, true
}

// plan plans what the run asks for.
func (r *testRun) plan(l *configuration.Loaded) (*proposal.Change, *plan.Plan, bool) {
	var output bytes.Buffer
	show := quietApp(&output)
	c, err := proposal.New(l, show, &proposal.ChangeOptions{Targets: rollout.AddressStrings(r.run.Targets), Replace: rollout.AddressStrings(r.run.Replace)})
	var p *plan.Plan
	if err == nil {
		p, err = proposal.Preview(r.soft, l, c)
	}
	if err == nil {
		err = proposal.Show(show, l, p, false, false)
	}
	if err != nil {
		r.stopWith("Not planned", printed(err, &output))
		return nil, nil, false
	}
	r.details.Write(output.Bytes())
	return c, p, r.allowed(l, p)
}

// allowed reports whether a plan destroys nothing that is protected. That it
// would may be expected.
func (r *testRun) allowed(l *configuration.Loaded, p *plan.Plan) bool {
	var diags hcl.Diagnostics
	for i := range p.Blocked {
		if blocked := &p.Blocked[i]; !r.expects(blocked.Addr.String()) {
			diags = append(diags, proposal.BlockedDiagnostic(l, blocked))
		}
	}
	if len(diags) > 0 {
		r.stop(diags)
	}
	return len(p.Blocked) == 0
}

// printed is an error with what was printed instead of it.
func printed(err error, output *bytes.Buffer) error {
	if errors.Is(err, terminal.ErrReported) {
		return errors.New(strings.TrimRight(output.String(), ".\n"))
	}
	return err
}

// load prepares what is to be planned, with the state that the file's runs share.
func (r *testRun) load(st *testStack, cfg *schema.Config, opts eval.Options) (*configuration.Loaded, bool) {
	own := *cfg
	own.Settings = st.site.Settings
	l := &configuration.Loaded{Source: st.src, Options: opts, Config: &own, Site: st.site, Paths: []string{st.src.Dir()}, Bundles: map[string]string{}}
	var diags hcl.Diagnostics
	if r.run.Apply {
		diags = configuration.Preflight(r.soft, r.terminal, l)
	} else {
		for _, p := range capacity.Check(&cfg.Desired) {
			diags = append(diags, l.Diagnostic(p.Addr, p.Attribute, hcl.DiagError, p.Summary, p.Detail))
		}
	}
	if diags.HasErrors() {
		r.stop(diags)
		return nil, false
	}
	if err := r.open(l); err != nil {
		r.stopWith("Not planned", err)
		return nil, false
	}
	return l, true
}

func (r *testRun) open(l *configuration.Loaded) error {
	var err error
	if l.Stack, err = stack.Open(r.soft, l.Site, r.run.Apply); err != nil {
		return err
	}
	if l.Document, err = l.Stack.Load(r.soft); err != nil {
		return err
	}
	if l.Sealer, err = l.Stack.Sealer(r.soft, l.Document, r.run.Apply); err != nil {
		return err
	}
	l.Desired, err = l.Prepare(l.Config)
	return err
}

// apply carries the plan out. Without ok there is nothing to assert.
func (r *testRun) apply(st *testStack, l *configuration.Loaded, c *proposal.Change, p *plan.Plan) bool {
	flags := &rollout.Options{AutoApprove: true, Parallelism: testParallelism, Timeout: testTimeout, Wait: string(r.run.Wait)}
	if r.run.Timeout > 0 {
		flags.Timeout = r.run.Timeout
	}
	st.last = l
	l.Disposable, l.Desired = true, configuration.Unprotected(l.Desired) // the plan was allowed
	var output bytes.Buffer
	run := &rollout.Rollout{Terminal: quietApp(&output), Options: flags, Loaded: l, Change: c}
	doc, err := run.CarryOut(r.soft, r.hard, p)
	r.details.Write(output.Bytes())
	st.doc = cmp.Or(doc, st.doc, l.Document)
	return r.applied(l, st.doc, err, output.String())
}

// applied judges how an apply ended: jobs may fail if that is expected.
func (r *testRun) applied(l *configuration.Loaded, doc *state.Document, err error, output string) bool {
	failed, unexpected := 0, hcl.Diagnostics(nil)
	for _, addr := range stack.SortedJobs(doc) {
		j := doc.Jobs[addr]
		if j.Status != schema.JobFailed {
			continue
		}
		if failed++; r.expects(addr.String()) {
			continue
		}
		detail := fmt.Sprintf("%s failed%s.", addr, progress.Because(j.Reason))
		if last := j.Last(); last != nil {
			detail += tailText(last)
		}
		unexpected = append(unexpected, l.Diagnostic(addr, "command", hcl.DiagError, "Job failed", detail))
	}
	var e *terminal.Exit
	switch {
	case len(unexpected) > 0:
		r.stop(unexpected)
		return false
	case err == nil, failed > 0 && errors.As(err, &e) && e.Code == terminal.ExitError:
		return true
	}
	if r.soft.Err() != nil {
		err = errors.New("interrupted")
	} else if output = strings.TrimSpace(output); output != "" {
		err = fmt.Errorf("%w\n\nWhat it did:\n%s", err, output)
	}
	r.stopWith("Not applied", err)
	return false
}

// tailText is the last lines of the task that failed.
func tailText(a *state.Attempt) string {
	for i := range a.Tasks {
		if t := &a.Tasks[i]; t.State == schema.TaskFailed && len(t.Tail) > 0 {
			return "\n    | " + strings.Join(t.Tail, "\n    | ")
		}
	}
	return ""
}

// conclude checks the assertions.
func (r *testRun) conclude(scope *eval.Scope) {
	diags := r.run.Assert(scope)
	r.failing = r.failing || diags.HasErrors()
	r.diags = append(r.diags, diags...)
	r.runs[r.run.Name] = scope.Outputs()
}

// missing finds what was expected to fail and did not.
func (r *testRun) missing() {
	for i, x := range r.run.Expect {
		if r.expected[i] {
			continue
		}
		rng := x.Range
		r.failing = true
		r.diags = append(r.diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Expected failure is missing", Subject: &rng,
			Detail: fmt.Sprintf("%s was expected to fail, and did not.", x.Name),
		})
	}
}

// testTimeout is how long an apply of a test may take unless the run says
// otherwise.
const testTimeout = 10 * time.Minute

// quietApp is an app that asks no questions and writes to w.
func quietApp(w io.Writer) *terminal.Terminal {
	return &terminal.Terminal{Stdout: w, Stderr: w, NoColor: true, PlainProgress: true}
}

// maxTestLog bounds what is read of the log of one task.
const maxTestLog = 8 << 20

var errLogTooLong = errors.New("the log is longer than is read of one")

// taskLog is what one task has written.
func taskLog(ctx context.Context, s store.Store, of store.LogName) (string, error) {
	var text strings.Builder
	_, err := store.ReadLog(ctx, s, of, 0, func(data []byte) error {
		text.Write(data)
		if text.Len() > maxTestLog {
			return errLogTooLong
		}
		return nil
	})
	if err != nil && !errors.Is(err, errLogTooLong) {
		return "", err
	}
	return text.String(), nil
}
