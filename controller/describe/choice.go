package describe

import (
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/state"
)

// choiceOf is which of its alternatives a job was last given slices of, nil before.
func choiceOf(j *state.Job) *clusterapi.Choice {
	c := j.Chosen()
	if c == nil {
		return nil
	}
	info := &clusterapi.Choice{Accelerator: string(c.Accelerator), Reason: choiceReasonOf(c.Reason)}
	for _, p := range c.Passed {
		info.Passed = append(info.Passed, &clusterapi.PassedAlternative{Accelerator: string(p.Accelerator), Cause: string(p.Cause), Text: p.Text})
	}
	return info
}

func choiceReasonOf(r state.ChoiceReason) clusterapi.ChoiceReason {
	switch r {
	case state.ChoiceFirst:
		return clusterapi.ChoiceReason_CHOICE_REASON_FIRST
	case state.ChoiceBlocked:
		return clusterapi.ChoiceReason_CHOICE_REASON_BLOCKED
	case state.ChoiceIdle:
		return clusterapi.ChoiceReason_CHOICE_REASON_IDLE
	case state.ChoiceFound:
		return clusterapi.ChoiceReason_CHOICE_REASON_FOUND
	}
	return clusterapi.ChoiceReason_CHOICE_REASON_UNSPECIFIED
}
