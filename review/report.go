package review

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/markdown"
)

// Report is what a run found out about a target.
type Report struct {
	Target   Target
	Run      Run
	Version  string // of fray
	Problems []Problem
	// Failure is why there is no plan, where that is no problem of the files; "": none.
	Failure string
	Planned *Planned // nil: there is no plan
	// Skipped says why only the files were checked; "": the plan was to be made.
	Skipped  Skipped
	Policies []markdown.PolicyResult
	// Notes are lines for people, such as who holds the lease.
	Notes []string
}

// Skipped is a closed set of reasons to make no plan.
type Skipped string

// The reasons.
const (
	SkippedFork    Skipped = "fork"         // the pull request comes from another repository
	SkippedUnknown Skipped = "unknown fork" // it may
)

// Planned is a plan, as far as it is reported.
type Planned struct {
	Counts  map[plan.Verb]int
	Changes bool // there is something to do
	Cost    change.CostTotal
	Shown   markdown.Input
	File    string // that it was saved to; "": it was not
	Digest  string // SHA-256 of that file
}

// Outcome is a closed set of how a plan went.
type Outcome string

// The outcomes.
const (
	OutcomeUnchanged Outcome = "unchanged"
	OutcomeChanges   Outcome = "changes"
	OutcomeDenied    Outcome = "denied"    // by a policy
	OutcomeFailed    Outcome = "failed"    // there is no plan, or it cannot be applied
	OutcomeValidated Outcome = "validated" // and no plan was to be made
)

// Outcome is how it went.
func (r *Report) Outcome() Outcome {
	switch {
	case r.Errors() > 0 || r.Failure != "":
		return OutcomeFailed
	case r.denials() > 0:
		return OutcomeDenied
	case r.Planned == nil:
		return OutcomeValidated
	case r.Planned.Changes:
		return OutcomeChanges
	}
	return OutcomeUnchanged
}

// Failed reports whether the job is to fail.
func (o Outcome) Failed() bool { return o == OutcomeFailed || o == OutcomeDenied }

// ExitCode is that of fray plan --detailed-exitcode, as an output.
func (o Outcome) ExitCode() int {
	switch o {
	case OutcomeFailed, OutcomeDenied:
		return 1
	case OutcomeChanges:
		return 2
	case OutcomeUnchanged, OutcomeValidated:
	}
	return 0
}

// Errors is how many problems are errors.
func (r *Report) Errors() int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == SeverityError {
			n++
		}
	}
	return n
}

func (r *Report) denials() int {
	n := 0
	for i := range r.Policies {
		if r.Policies[i].Denies() {
			n++
		}
	}
	return n
}

// Marker is what a comment of the report hides.
func (r *Report) Marker() Marker {
	m := Marker{Kind: KindPlan, Target: r.Target, Commit: r.Run.Commit, Run: r.Run.ID, Attempt: r.Run.Attempt}
	if r.Planned != nil && !r.Outcome().Failed() {
		m.Changes, m.Plan = r.Planned.Changes, r.Planned.Digest
	}
	return m
}

// Line is the outcome in one line, for a commit status and a log.
func (r *Report) Line() string {
	switch r.Outcome() {
	case OutcomeFailed:
		if n := r.Errors(); n > 0 {
			return counted(n, "error", "errors")
		}
		return "there is no plan"
	case OutcomeDenied:
		return "denied by " + counted(r.denials(), "policy rule", "policy rules")
	case OutcomeValidated:
		return "valid; no plan was made"
	case OutcomeUnchanged:
		return "no changes"
	case OutcomeChanges:
	}
	return r.Planned.countsLine()
}

// verbs are what a plan does, in the order in which people read it.
func verbs() []plan.Verb {
	return []plan.Verb{plan.VerbCreate, plan.VerbUpdate, plan.VerbRestart, plan.VerbReplace, plan.VerbDelete}
}

// countsLine is "2 to create, 1 to delete".
func (p *Planned) countsLine() string {
	var parts []string
	for _, verb := range verbs() {
		if n := p.Counts[verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, verb))
		}
	}
	if len(parts) == 0 {
		return "no change of what is declared, but something else to do"
	}
	return strings.Join(parts, ", ")
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
