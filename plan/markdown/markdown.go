// Package markdown shows a plan as Markdown for reviews: comments on pull requests and
// summaries of CI runs, on GitHub and GitLab.
//
// It decides nothing, knows no clock, no files and no forge: all that it shows is in [Input].
// What [render.Split] writes of a change is what fray plan prints, with the marks in the
// first column.
//
// Start with Render for the order of the sections, then section.go for what is cut, and
// inert.go for how text from outside is written.
//
// # Rules of what is shown
//
//   - The title has the counts of the whole plan, whatever is cut below it.
//   - What ends work that runs stands on top, with how long it has run.
//   - Text from outside (names, values, reasons, messages) stands in code spans and code
//     blocks, and nowhere else. There no forge reads it as Markdown, HTML, a mention, a
//     reference, a link, an emoji, mathematics or a quick action.
//   - Sensitive values are not shown: package render leaves them out, and the caller hides
//     them in messages.
//   - What does not fit is left out as a whole: a change is shown completely or not at all.
//     How many are left out is stated, with where the rest is.
//   - The same input gives the same bytes.
package markdown

import (
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
)

// Input is all that is shown of a plan.
type Input struct {
	Header
	// Plan is nil if none could be made: Problems then have the errors.
	Plan     *plan.Plan
	Policies []PolicyResult // in the order in which they are shown
	Problems []Problem      // errors, then warnings
}

// Header is where a plan comes from. Omitted fields are not shown.
type Header struct {
	Directory string // of the configuration, as the reader knows it
	Workspace string // "" and "default" are not shown
	Commit    string // that the plan was made of
	Run       string // http or https URL of the run that made it
	// FrayVersion, Serial and Revision identify the fray and the state that the plan was
	// made with.
	FrayVersion      string
	Serial, Revision uint64
}

// Severity is how much a problem or a policy matters.
type Severity string

// The severities.
const (
	SeverityWarn Severity = "warn" // to be read
	SeverityDeny Severity = "deny" // the plan is not carried out
)

// Problem is a diagnostic of the files, or of making the plan. Its texts must not have
// sensitive values in them.
type Problem struct {
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail,omitempty"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"` // 0: none
}

// PolicyStatus is how a policy judged a plan.
type PolicyStatus string

// The statuses.
const (
	PolicyPassed     PolicyStatus = "passed"
	PolicyFailed     PolicyStatus = "failed"
	PolicyError      PolicyStatus = "error"      // its rule cannot be evaluated, which counts as failed
	PolicyOverridden PolicyStatus = "overridden" // it failed, and By allowed it
)

// PolicyResult is how one policy judged a plan, once for each message. Its texts must not
// have sensitive values in them.
type PolicyResult struct {
	Name     string       `json:"name"`
	Severity Severity     `json:"severity"`
	Status   PolicyStatus `json:"status"`
	Message  string       `json:"message,omitempty"`
	// By and Reason are who allowed an overridden one, and why.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Denies reports whether a result keeps a plan from being carried out.
func (r *PolicyResult) Denies() bool {
	return r.Status == PolicyError || r.Severity == SeverityDeny && r.Status == PolicyFailed
}

// Limit is how much Render writes. The zero Limit fits a comment on GitHub.
type Limit struct {
	// Characters are as GitHub counts them, in UTF-8; 0: DefaultCharacters, and less than 0:
	// no limit. Less than LeastCharacters counts as that.
	Characters int
	// Rest states where the plan is shown as a whole, "": which command shows it.
	Rest string
}

const (
	// CommentCharacters is the most that GitHub takes in a comment.
	CommentCharacters = 65_536
	// DefaultCharacters leave room in a comment for what its sender adds.
	DefaultCharacters = 64_000
	// LeastCharacters is what a title, counts and the sentence about the rest need.
	LeastCharacters = 5_000
)

// width is where the texts of a plan are wrapped: the columns of a comment's code block.
const width = 100

// Render is a plan as Markdown, which ends with a newline.
func Render(in Input, limit Limit) string {
	if in.Plan == nil {
		d := newDocument(&in, limit)
		d.fixed(d.title(failedTitle), d.origin())
		d.add(problemBox(errorsOf(in.Problems)))
		d.add(warningList(in.Problems))
		return d.String()
	}
	parts := render.Split(in.Plan, render.Options{Width: width})
	if nothing(&in, &parts) {
		return noChanges(&in)
	}
	d := newDocument(&in, limit)
	d.fixed(d.title(titleOf(in.Plan)), d.origin())
	d.fixed(narrowed(in.Plan))
	d.add(problemBox(errorsOf(in.Problems)))
	d.add(policyBox(in.Policies))
	d.add(blockedBox(in.Plan))
	d.add(runningBox(in.Plan))
	d.fixed(costLine(in.Plan.Costs))
	d.add(policyList(in.Policies))
	d.add(warningList(in.Problems))
	for _, s := range lists(in.Plan, parts.Blocks) {
		d.add(s)
	}
	d.reserve(details(parts.Blocks))
	d.add(folded("Output changes", "diff", parts.Outputs))
	d.add(folded("Changes of the state itself", "diff", parts.Moved))
	d.add(folded("Found since the last apply", "text", parts.Drift))
	d.add(folded("Pending", "text", parts.Pending))
	d.add(folded("Left as it is", "text", parts.Notes))
	d.add(folded("Capacity and reservations", "text", lines(parts.Capacity, parts.Expiries)))
	d.add(folded("Scheduled runs, while a controller serves the stack", "text", lines(parts.Schedules)))
	d.add(folded("Budgets of money", "text", lines(parts.MoneyBudgets)))
	d.add(folded("Cost by kind of slice", "text", costKinds(&parts)))
	return d.String()
}

// nothing reports whether there is nothing to review: a plan without changes, of which
// nothing waits and nothing is to be said.
func nothing(in *Input, parts *render.Parts) bool {
	if !in.Plan.Empty() || len(parts.Pending)+len(parts.Notes)+len(in.Plan.Blocked)+len(in.Problems) > 0 {
		return false
	}
	for i := range in.Policies {
		if in.Policies[i].Status != PolicyPassed {
			return false
		}
	}
	return true
}

// noChanges is all of a plan without changes, on one line.
func noChanges(in *Input) string {
	text := "**No changes" + in.of() + ".** " + whyNoChanges(in.Plan.Mode)
	if only := narrowed(in.Plan); only != "" {
		text += " " + strings.TrimSpace(only)
	}
	if origin := in.origin(); origin != "" {
		text += " " + origin
	}
	return strings.TrimSpace(text) + "\n"
}
