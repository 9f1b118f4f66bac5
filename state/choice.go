package state

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Choice is of which of its alternatives a job was last given slices, and why.
type Choice struct {
	Accelerator schema.Accelerator `json:"accelerator"`
	Reason      ChoiceReason       `json:"reason"`
	At          time.Time          `json:"at"`
	// Passed are the alternatives before it in the list, in its order.
	Passed []PassedAlternative `json:"passed,omitempty"`
}

// ChoiceReason is a closed set of why an alternative was chosen.
type ChoiceReason string

// The reasons.
const (
	ChoiceFirst   ChoiceReason = "first"   // it is the first of the list
	ChoiceBlocked ChoiceReason = "blocked" // those before it were blocked everywhere
	ChoiceIdle    ChoiceReason = "idle"    // slices of it idled, and were ready at once
	ChoiceFound   ChoiceReason = "found"   // the job was found running on it
)

// Text is the reason for people, after the name of the alternative.
func (r ChoiceReason) Text() string {
	switch r {
	case ChoiceFirst:
		return "the first of its alternatives"
	case ChoiceBlocked:
		return "as better ones were not to be had"
	case ChoiceIdle:
		return "as slices of it idled"
	case ChoiceFound:
		return "as it was found running on it"
	}
	return string(r)
}

// Chosen is which of its alternatives a job was last given slices of, nil where it has no
// alternatives or was given none.
func (j *Job) Chosen() *Choice {
	if j.Spec == nil || len(j.Spec.Resources.Accelerators) == 0 {
		return nil
	}
	return j.Choice
}

// PassedAlternative is an alternative that was not to be had when another was chosen.
type PassedAlternative struct {
	Accelerator schema.Accelerator `json:"accelerator"`
	Cause       PassedCause        `json:"cause"`
	Text        string             `json:"text,omitempty"` // for people
}

// PassedCause is a closed set of why an alternative was passed.
type PassedCause string

// The causes.
const (
	PassedCapacity PassedCause = "capacity" // stock-outs, or slices that die young
	PassedQuota    PassedCause = "quota"
	PassedProbing  PassedCause = "probing"  // other slices try the place again first
	PassedProvider PassedCause = "provider" // what is there is not known
	PassedNowhere  PassedCause = "nowhere"  // no zone that is allowed has it
	PassedLimit    PassedCause = "limit"    // it is larger than a limit
	PassedIdle     PassedCause = "idle"     // slices of another one idled
)
