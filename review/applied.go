package review

import "fmt"

// Applied is how an apply ended.
type Applied struct {
	Target  Target
	Run     Run
	Version string
	Outcome ApplyOutcome
	Text    string // what went wrong, "" for nothing
	Code    int    // exit code
}

// ApplyOutcome is a closed set.
type ApplyOutcome string

// The outcomes of an apply.
const (
	ApplyComplete ApplyOutcome = "complete"
	ApplyPending  ApplyOutcome = "pending" // it was accepted, and something still waits
	ApplyStale    ApplyOutcome = "stale"   // something changed since the plan was made
	ApplyLocked   ApplyOutcome = "locked"  // another run changes the stack
	ApplyOther    ApplyOutcome = "another plan"
	ApplyFailed   ApplyOutcome = "failed"
)

// sentence is the outcome for people.
func (o ApplyOutcome) sentence() string {
	switch o {
	case ApplyComplete:
		return "The plan was applied."
	case ApplyPending:
		return "The plan was accepted, and something still waits."
	case ApplyStale:
		return "Nothing was done: the plan is stale."
	case ApplyLocked:
		return "Nothing was done: another run is changing this stack."
	case ApplyOther:
		return "Nothing was done: this is not the plan that was reviewed."
	case ApplyFailed:
	}
	return "The apply failed."
}

// Marker is what the comment hides.
func (a *Applied) Marker() Marker {
	return Marker{Kind: KindApply, Target: a.Target, Commit: a.Run.Commit, Run: a.Run.ID, Attempt: a.Run.Attempt}
}

// Comment is the comment of an apply.
func (a *Applied) Comment() string { return a.Marker().Encode() + "\n" + a.Summary() }

// Summary is the comment without its marker.
func (a *Applied) Summary() string {
	text := "## Apply of " + a.Target.Markdown() + "\n\n**" + a.Outcome.sentence() + "**\n\n"
	if a.Text != "" {
		text += Block(a.Text) + "\n"
	}
	return text + footer(a.Run, a.Version)
}

// Outputs are those of an apply.
func (a *Applied) Outputs() []Output {
	return []Output{{"outcome", string(a.Outcome)}, {"exitcode", fmt.Sprint(a.Code)}}
}

// Line is the outcome in one line.
func (a *Applied) Line() string { return a.Outcome.sentence() }
