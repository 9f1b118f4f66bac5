package describe

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job is described with its alternatives, and with the one that it was given.
func TestAlternatives(t *testing.T) {
	v := &access.View{Doc: &state.Document{}, Plan: &plan.Plan{}}
	j := &state.Job{Spec: &schema.Job{Resources: schema.Resources{Accelerators: []schema.Accelerator{"v5litepod-16", "h100:8"}}}}
	if info := Job(v, j); len(info.GetAccelerators()) != 2 || info.GetAccelerators()[1] != "h100:8" || info.GetChoice() != nil {
		t.Errorf("before it is given any: got %v of %q", info.GetChoice(), info.GetAccelerators())
	}
	j.Choice = &state.Choice{Accelerator: "h100:8", Reason: state.ChoiceBlocked, Passed: []state.PassedAlternative{
		{Accelerator: "v5litepod-16", Cause: state.PassedQuota, Text: "8 of 8 chips are used"},
	}}
	want := &clusterapi.Choice{
		Accelerator: "h100:8", Reason: clusterapi.ChoiceReason_CHOICE_REASON_BLOCKED,
		Passed: []*clusterapi.PassedAlternative{{Accelerator: "v5litepod-16", Cause: "quota", Text: "8 of 8 chips are used"}},
	}
	if got := Job(v, j).GetChoice(); !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	j.Spec.Resources.Accelerators = nil
	if got := Job(v, j).GetChoice(); got != nil {
		t.Errorf("without alternatives: got %v", got)
	}
}
