package describe

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestTerminationOfAttempts: an attempt has what the task recorded by which it failed,
// and no more of others.
func TestTerminationOfAttempts(t *testing.T) {
	end := &schema.Termination{Cause: schema.TerminationCallableRefused, Message: "no module only_here", Trace: "at 1"}
	want := &clusterapi.Termination{Cause: clusterapi.TerminationCause_TERMINATION_CAUSE_CALLABLE_REFUSED, Message: "no module only_here", Trace: "at 1"}
	first := 0
	for _, test := range []struct {
		name    string
		attempt state.Attempt
		want    *clusterapi.Termination
	}{
		{"one task", state.Attempt{Outcome: schema.TaskFailed, Tasks: []state.Task{{Termination: end}}}, want},
		{"the second of two", state.Attempt{Outcome: schema.TaskFailed, Tasks: []state.Task{{}, {Termination: end}}}, want},
		{"not the one that failed first", state.Attempt{Outcome: schema.TaskFailed, EndedBy: &first, Tasks: []state.Task{{}, {Termination: end}}}, nil},
		{"a host was lost besides", state.Attempt{Outcome: schema.TaskPreempted, Tasks: []state.Task{{Termination: end}}}, nil},
		{"nothing recorded", state.Attempt{Outcome: schema.TaskFailed, Tasks: []state.Task{{Reason: unmadeText}}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := attemptInfo(&test.attempt).GetTermination(); !proto.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

const unmadeText = "the actor could not be constructed: ValueError: a text decides nothing"
