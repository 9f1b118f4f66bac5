package testruns

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/policyfile"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// Policies runs the cases of the policies of a directory and reports them. Nothing is
// started, and no stack is read.
func Policies(ctx context.Context, a *terminal.Terminal, dir string, flags Options) error {
	held, diags := policies.Read(dir, nil)
	diags = append(diags, held.Check()...)
	if err := a.Diagnostics(held.Files(), diags); err != nil {
		return err
	}
	paths, err := filesOf(dir, flags, load.PolicyTestEnding)
	if err != nil {
		return err
	}
	report := newTestReport(a, flags)
	if len(paths) == 0 {
		a.Warn(fmt.Sprintf("there are no tests: no *%s in %s or in %s", load.PolicyTestEnding, dir, filepath.Join(dir, flags.Directory)))
	}
	for _, path := range paths {
		if ctx.Err() != nil {
			return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted"}
		}
		policyCases(report.file(path), held, dir)
	}
	report.summary()
	if report.failed() {
		return terminal.ErrReported
	}
	return nil
}

// policyCases runs the cases of one file.
func policyCases(report *fileReport, held *policies.Policies, dir string) {
	defer report.end()
	file, diags := policyfile.ParseCases(report.path, dir)
	if report.problems(file.Files(), diags); diags.HasErrors() {
		return
	}
	for _, c := range file.Cases {
		report.begin(c.Name)
		began := time.Now()
		one := policyCase{Case: c, held: held}
		one.run()
		files := file.Files()
		maps.Copy(files, held.Files())
		report.run(testResult{run: c.Name, status: one.status(), took: time.Since(began), diags: one.diags, files: files, details: one.details.String()})
	}
}

// policyCase is a case while it is carried out.
type policyCase struct {
	*policyfile.Case
	held    *policies.Policies
	diags   hcl.Diagnostics
	broken  bool // it could not be done
	details bytes.Buffer
}

func (c *policyCase) status() testStatus {
	switch {
	case c.broken:
		return testError
	case c.diags.HasErrors():
		return testFailed
	}
	return testPassed
}

func (c *policyCase) failAt(at hcl.Range, summary, detail string) {
	c.diags = append(c.diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &at})
}

func (c *policyCase) run() {
	names := c.held.Names()
	for _, name := range slices.Concat(c.Policies, c.Denied.Names, c.Warned.Names) {
		if !slices.Contains(names, name) {
			c.broken = true
			c.failAt(c.Range, "No such policy", fmt.Sprintf("There is no policy %q: there are %s.", name, strings.Join(names, ", ")))
			return
		}
	}
	value, err := c.planned()
	if err != nil {
		c.broken = true
		c.failAt(c.PlanRange, "No plan to hold", configuration.DetailOf(err))
		return
	}
	found, diags := c.held.With(c.Inputs, c.Policies).Findings(value)
	if diags.HasErrors() {
		c.broken, c.diags = true, diags
		return
	}
	results, err := policy.Judge(found, nil, policy.Who{})
	if err != nil {
		c.broken = true
		c.failAt(c.Range, "No plan to hold", configuration.DetailOf(err))
		return
	}
	for i := range results {
		if at := slices.IndexFunc(results[i].Violations, func(v plan.PolicyViolation) bool { return v.Broken }); at >= 0 {
			v := &results[i].Violations[at]
			c.failAt(c.Range, "Rule without a result", fmt.Sprintf("%s, %s line %d: %s", results[i].Name, v.File, v.Line, v.Message))
		}
	}
	_ = render.Policies(&c.details, results, render.Options{Verbose: true})
	c.expect(results, c.Denied, plan.PolicyDenied)
	c.expect(results, c.Warned, plan.PolicyWarned)
	c.messages(results)
}

// planned is the plan of the case.
func (c *policyCase) planned() (cty.Value, error) {
	switch {
	case c.PlanFile != "":
		return policies.ReadValue(c.PlanFile)
	case c.Configuration != "":
		return plannedFrom(c.Configuration)
	}
	return policies.Complete(c.Plan)
}

// plannedFrom is the first plan of a configuration.
func plannedFrom(dir string) (cty.Value, error) {
	l, diags := configuration.Judge([]string{dir}, configuration.Options{})
	if diags.HasErrors() {
		return cty.NilVal, diags.Errs()[0]
	}
	if l.Config.Partial {
		return cty.NilVal, fmt.Errorf("%s has variables without a value: give them defaults", dir)
	}
	key, err := state.NewKey(make([]byte, state.KeySize)) // secrets are hidden, and never opened
	if err != nil {
		return cty.NilVal, err
	}
	desired, err := l.Config.Desired.Seal(key)
	if err != nil {
		return cty.NilVal, err
	}
	in, err := proposal.FirstInput(desired, l.Options.Workspace)
	return policies.Value(in), err
}

// expect compares the policies of one status with those that are expected.
func (c *policyCase) expect(results []plan.PolicyResult, want policyfile.Expected, status plan.PolicyStatus) {
	var got []string
	for i := range results {
		r := &results[i]
		if r.Status != status {
			continue
		}
		got = append(got, r.Name)
		if !slices.Contains(want.Names, r.Name) {
			c.failAt(want.Range, fmt.Sprintf("Unexpectedly %s", status), fmt.Sprintf("The plan is %s by %s: %s", status, r.Name, firstMessages(r)))
		}
	}
	for _, name := range want.Names {
		if !slices.Contains(got, name) {
			c.failAt(want.Range, fmt.Sprintf("Not %s", status), fmt.Sprintf("The plan is not %s by %s, as is expected.", status, name))
		}
	}
}

// firstMessages are those of the first violations of a policy.
func firstMessages(r *plan.PolicyResult) string {
	var texts []string
	for _, v := range r.Violations[:min(3, len(r.Violations))] {
		texts = append(texts, v.Message)
	}
	return strings.Join(texts, " ")
}

// messages checks the messages that are expected.
func (c *policyCase) messages(results []plan.PolicyResult) {
	for _, m := range c.Messages {
		i := slices.IndexFunc(results, func(r plan.PolicyResult) bool { return r.Name == m.Policy })
		if i < 0 || !slices.ContainsFunc(results[i].Violations, func(v plan.PolicyViolation) bool { return has(v.Message, m.Text) }) {
			said := "It has no message."
			if i >= 0 && len(results[i].Violations) > 0 {
				said = "Its messages: " + firstMessages(&results[i])
			}
			c.failAt(m.Range, "Another message", fmt.Sprintf("No message of %s has this text. %s", m.Policy, said))
		}
	}
}

// has reports whether a message has a text that its case expects.
func has(message, text string) bool { return strings.Contains(message, text) }
