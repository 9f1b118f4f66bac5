package actors

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestActorsHaveStatuses(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := func(id, names string, status schema.JobStatus, attempt int) *state.Job {
		return &state.Job{
			ID: id, Status: status, Attempt: attempt, Reason: "because",
			Spec: &schema.Job{Namespace: "rl", Environment: schema.Environment{Env: map[string]schema.Text{"FRAY_ACTOR_NAMES": schema.Plain(names)}}},
		}
	}
	addr := func(name string) schema.Address { return schema.Address{Kind: schema.KindActorService, Name: name} }
	ready := host("ready-1", `["r", "r_0"]`, schema.JobRunning, 2)
	ready.Ready = true
	done := host("done-1", `["d"]`, schema.JobSucceeded, 1)
	done.Reason = ""
	stopped, draining := host("stopped-1", `["t"]`, schema.JobRunning, 1), host("draining-1", `["v"]`, schema.JobRunning, 1)
	stopped.Launch, stopped.Stop, draining.Launch, draining.Stop = &state.Launch{}, true, &state.Launch{}, true
	again := host("again-1", `["n"]`, schema.JobRunning, 1)
	again.Attempts = []state.Attempt{{Number: 1, StopGeneration: 4}}
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{
		addr("created"):   host("created-1", `["c"]`, schema.JobPending, 0),
		addr("restarted"): host("restarted-1", `["s"]`, schema.JobRunning, 2),
		addr("failed"):    host("failed-1", `["f"]`, schema.JobFailed, 3),
		addr("ready"):     ready,
		addr("done"):      done,
		addr("deleted"):   host("deleted-1", `["x"]`, schema.JobStopped, 1),
		addr("former"):    host("former-1", `["c"]`, schema.JobFailed, 1), // created again since
		addr("program"):   {ID: "program-1", Status: schema.JobRunning, Attempt: 1, Spec: &schema.Job{Namespace: "rl"}},
		addr("odd"):       host("odd-1", `not JSON`, schema.JobRunning, 1),
		addr("again"):     again,
	}}
	for a := range doc.Jobs {
		doc.Desired.Jobs = append(doc.Desired.Jobs, schema.Job{Addr: a})
	}
	doc.Jobs[addr("removed")] = host("removed-1", `["m"]`, schema.JobRunning, 1)
	doc.Jobs[addr("stopped")], doc.Jobs[addr("draining")] = stopped, draining
	got := actorsOf([]*registry.Endpoint{
		{ID: "actor-r", Namespace: "rl", Name: "r", Address: "10.0.0.1:1", JobID: "ready-1", Attempt: 2, At: since},
		{ID: "actor-old", Namespace: "rl", Name: "s", Address: "10.0.0.2:1", JobID: "restarted-1", Attempt: 1, At: since},
		{ID: "actor-own", Namespace: "rl", Name: "own", Address: "10.0.0.3:1", JobID: "program-1", Attempt: 1, At: since},
		{ID: "actor-gone", Namespace: "rl", Name: "gone", Address: "10.0.0.4:1", JobID: "gone-1", Attempt: 1, At: since},
		{ID: "actor-f", Namespace: "rl", Name: "f", Address: "10.0.0.5:1", JobID: "failed-1", Attempt: 3, At: since},
		{ID: "actor-v", Namespace: "rl", Name: "v", Address: "10.0.0.6:1", JobID: "draining-1", Attempt: 1, At: since},
	}, doc)
	serves := "it serves; its name resolves seconds after fray watch starts"
	want := []Actor{
		{Name: "c", Namespace: "rl", Status: Creating, Reason: "because", Job: addr("created"), JobID: "created-1"},
		{Name: "f", Namespace: "rl", Status: Failed, Reason: "because", Job: addr("failed"), JobID: "failed-1", Attempt: 3},
		{Name: "m", Namespace: "rl", Status: Stopping, Reason: "because", Job: addr("removed"), JobID: "removed-1", Attempt: 1},
		{Name: "n", Namespace: "rl", Status: Restarting, Reason: "because", Job: addr("again"), JobID: "again-1", Attempt: 1},
		{Name: "own", Namespace: "rl", Status: Ready, Address: "10.0.0.3:1", ID: "actor-own", Job: addr("program"), JobID: "program-1", Attempt: 1, Since: since},
		{Name: "r", Namespace: "rl", Status: Ready, Address: "10.0.0.1:1", ID: "actor-r", Job: addr("ready"), JobID: "ready-1", Attempt: 2, Since: since},
		{Name: "r_0", Namespace: "rl", Status: Restarting, Reason: serves, Job: addr("ready"), JobID: "ready-1", Attempt: 2},
		{Name: "s", Namespace: "rl", Status: Restarting, Reason: "because", Job: addr("restarted"), JobID: "restarted-1", Attempt: 2},
		{Name: "t", Namespace: "rl", Status: Stopping, Reason: "because", Job: addr("stopped"), JobID: "stopped-1", Attempt: 1},
		{Name: "v", Namespace: "rl", Status: Stopping, Reason: "because", Address: "10.0.0.6:1", ID: "actor-v", Job: addr("draining"), JobID: "draining-1", Attempt: 1, Since: since},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b schema.Address) bool { return a == b })); diff != "" {
		t.Errorf("actors (-want +got):\n%s", diff)
	}
}
