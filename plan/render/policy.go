package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/plan"
)

// maxViolations is how many violations of a policy are shown, unless all are to be.
const maxViolations = 10

// policyPrinter writes the section of policies.
type policyPrinter struct{ *printer }

// Policies writes what policies find in a plan, as Text does.
func Policies(w io.Writer, results []plan.PolicyResult, opts Options) error {
	p := newPrinter(w, opts)
	policyPrinter{p}.policies(results)
	return p.flush()
}

// policies writes what policies find in the plan: a line of counts, and those that find
// something, the ones that deny it first.
func (p policyPrinter) policies(results []plan.PolicyResult) {
	if len(results) == 0 {
		return
	}
	counts := map[plan.PolicyStatus]int{}
	for i := range results {
		counts[results[i].Status]++
	}
	var parts []string
	for _, of := range policyStatuses() {
		if n := counts[of]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, string(of)))
		}
	}
	p.print("\n", p.paint(bold, "Policies:"), " ", strings.Join(parts, ", "), ".\n")
	for _, of := range policyStatuses() {
		for i := range results {
			if r := &results[i]; r.Status == of && of != plan.PolicyPassed {
				p.policy(r)
			}
		}
	}
}

// policyStatuses are in the order in which they are shown.
func policyStatuses() []plan.PolicyStatus {
	return []plan.PolicyStatus{plan.PolicyDenied, plan.PolicyOverridden, plan.PolicyWarned, plan.PolicyPassed}
}

func (p policyPrinter) policy(r *plan.PolicyResult) {
	heading := clean(r.Name)
	if r.Description != "" {
		heading += ": " + oneLine(r.Description)
	}
	p.print("  ", p.paint(inkOf(r.Status), string(r.Status)), " ", heading, "\n")
	shown := r.Violations
	if len(shown) > maxViolations+1 && !p.verbose {
		shown = shown[:maxViolations]
	}
	for i := range shown {
		p.violation(&shown[i])
	}
	if rest := len(r.Violations) - len(shown); rest > 0 {
		p.print("    … and ", strconv.Itoa(rest), " more\n")
	}
	switch {
	case r.Override != nil:
		p.print("    overridden by ", clean(r.Override.By), ": ", oneLine(r.Override.Reason), "\n")
	case r.NotOverridden != "":
		p.print("    not overridden: ", clean(r.NotOverridden), "\n")
	}
}

// violation is "- job.a: message (file.policy.hcl line 3)"; lines after the first are indented.
func (p policyPrinter) violation(v *plan.PolicyViolation) {
	subject := ""
	if !v.Addr.IsZero() && !strings.Contains(v.Message, v.Addr.String()) {
		subject = clean(v.Addr.String()) + ": "
	}
	lines := strings.Split(strings.TrimSpace(v.Message), "\n")
	p.print("    - ", subject)
	for i, line := range lines {
		if i > 0 {
			p.print("\n      ")
		}
		p.print(clean(strings.TrimRight(line, " \t\r")))
	}
	p.print(p.paint(gray, fmt.Sprintf(" (%s line %d)", clean(v.File), v.Line)), "\n")
}

func inkOf(s plan.PolicyStatus) ink {
	switch s {
	case plan.PolicyDenied:
		return red
	case plan.PolicyWarned, plan.PolicyOverridden:
		return yellow
	case plan.PolicyPassed:
	}
	return green
}

// oneLine is a text without line breaks.
func oneLine(s string) string { return clean(strings.Join(strings.Fields(s), " ")) }
