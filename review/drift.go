package review

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/plan"
)

// Drift is what a scheduled run found that changed by itself.
type Drift struct {
	Target  Target
	Run     Run
	Version string
	Found   []plan.Drift
	Failure string // why it is not known; "": it is
}

// DriftLabel is the label of issues about drift.
const DriftLabel = "fray-drift"

// IssueAction is a closed set of what is done with the issue of a target.
type IssueAction string

// The actions.
const (
	OpenIssue  IssueAction = "open"
	EditIssue  IssueAction = "edit"
	CloseIssue IssueAction = "close"
	LeaveIssue IssueAction = "leave"
)

// IssueChoice is what is done with the issue of a target.
type IssueChoice struct {
	Action IssueAction
	Issue  forge.Issue // as it is to be, with its number unless it is to be opened
}

// ChooseIssue decides what becomes of the open issues about drift: drift has one issue for each
// target, which is closed once there is none. What is not known changes no issue.
func (d *Drift) ChooseIssue(open []forge.Issue, author string) IssueChoice {
	mine := d.marker()
	for _, issue := range open {
		m, ok := ParseMarker(issue.Body)
		if !ok || issue.Author != author || !m.about(mine) {
			continue
		}
		next := forge.Issue{Number: issue.Number, Title: d.title(), Body: d.Body()}
		switch {
		case d.Failure != "" || m.after(mine):
			return IssueChoice{Action: LeaveIssue, Issue: issue}
		case len(d.Found) == 0:
			return IssueChoice{Action: CloseIssue, Issue: next}
		}
		return IssueChoice{Action: EditIssue, Issue: next}
	}
	if d.Failure != "" || len(d.Found) == 0 {
		return IssueChoice{Action: LeaveIssue}
	}
	return IssueChoice{Action: OpenIssue, Issue: forge.Issue{Title: d.title(), Body: d.Body()}}
}

func (d *Drift) marker() Marker {
	return Marker{Kind: KindDrift, Target: d.Target, Commit: d.Run.Commit, Run: d.Run.ID, Attempt: d.Run.Attempt, Changes: len(d.Found) > 0}
}

// title is that of the issue. A forge shows titles as text, without markup.
func (d *Drift) title() string { return forge.OneLine("fray: drift in "+d.Target.String(), 200) }

// Body is the text of the issue, with its marker.
func (d *Drift) Body() string { return d.marker().Encode() + "\n" + d.Text() }

// maxDrift is how many differences are listed.
const maxDrift = 200

// Text is what was found, for an issue and a summary.
func (d *Drift) Text() string {
	foot := footer(d.Run, d.Version)
	var b strings.Builder
	switch {
	case d.Failure != "":
		return "## Drift of " + d.Target.Markdown() + "\n\n**It is not known whether there is drift.**\n\n" + Block(d.Failure) + "\n" + foot
	case len(d.Found) == 0:
		return "**Drift** of " + d.Target.Markdown() + ": none. What is observed is what the state records.\n\n" + foot
	}
	fmt.Fprintf(&b, "## Drift of %s\n\n%s between what is observed and what the state records:\n\n", d.Target.Markdown(), counted(len(d.Found), "difference", "differences"))
	for _, f := range d.Found[:min(len(d.Found), maxDrift)] {
		fmt.Fprintf(&b, "- %s: %s", Code(f.Addr.String()), Code(f.Found))
		if f.Then != "" {
			b.WriteString("; " + Code(f.Then))
		}
		b.WriteString("\n")
	}
	if n := len(d.Found) - maxDrift; n > 0 {
		fmt.Fprintf(&b, "- and %d more\n", n)
	}
	b.WriteString("\n`fray apply` or `fray watch` repairs what is declared; `fray apply --refresh-only` records what is observed. The issue closes once a later run finds no difference.\n\n")
	return b.String() + foot
}

// Outputs are those of a run that looks for drift.
func (d *Drift) Outputs() []Output {
	if d.Failure != "" {
		return []Output{{"drift", ""}, {"differences", ""}, {"exitcode", "1"}}
	}
	code := "0"
	if len(d.Found) > 0 {
		code = "2"
	}
	return []Output{{"drift", fmt.Sprint(len(d.Found) > 0)}, {"differences", fmt.Sprint(len(d.Found))}, {"exitcode", code}}
}

// Line is what was found in one line.
func (d *Drift) Line() string {
	switch {
	case d.Failure != "":
		return "it is not known whether there is drift"
	case len(d.Found) == 0:
		return "no drift"
	}
	return counted(len(d.Found), "difference", "differences")
}
