package describe

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What waits while the stack is paused says so, whatever else it waits for.
func TestSemantics14PausedIsAReason(t *testing.T) {
	addr := schema.LaunchedAddress(schema.KindJob, "rl", "", "train")
	j := &state.Job{ID: "train", Spec: &schema.Job{Addr: addr, Namespace: "rl"}, Status: schema.JobPending}
	paused := &state.Pause{At: time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC), By: "ada", Reason: "the network is being moved"}
	waits := []plan.Pending{{Addr: addr, Reasons: []string{"slice train-0 is being created"}}}
	for _, tt := range []struct {
		name   string
		paused *state.Pause
		plan   []plan.Pending
		want   []string
	}{
		{"runs", nil, waits, waits[0].Reasons},
		{"paused", paused, waits, []string{pause.Text(paused), waits[0].Reasons[0]}},
		{"paused without a plan for it", paused, nil, []string{pause.Text(paused)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &access.View{Doc: &state.Document{Paused: tt.paused}, Plan: &plan.Plan{Pending: tt.plan}}
			info := Job(v, j)
			got := info.GetPendingReasons()
			if len(got) != len(tt.want) || info.GetStatus() != clusterapi.JobStatus_JOB_STATUS_PENDING {
				t.Fatalf("%s for %q, want pending for %q", info.GetStatus(), got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("reason %d is %q, want %q", i, got[i], tt.want[i])
				}
			}
		})
	}
}
