package metadata

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// hosting is a job that hosts the actor "counter".
func hosting(id string, status schema.JobStatus, reason string, minute int) *state.Job {
	j := accesstest.RunningJob("rl", id, 1)
	j.Spec.Environment.Env = map[string]schema.Text{"FRAY_ACTOR_NAMES": schema.Plain(`["counter", "counters"]`)}
	j.ID, j.Status, j.Reason = id, status, reason
	j.EndedAt = time.Date(2026, 11, 21, 12, minute, 0, 0, time.UTC)
	return j
}

func unmade(j *state.Job) *state.Job {
	j.Attempts = []state.Attempt{{Number: 1, Tasks: []state.Task{{
		Termination: &schema.Termination{Cause: schema.TerminationActorUnmade, Type: "ValueError", Message: "no such lesson"},
	}}}}
	return j
}

func TestDeath(t *testing.T) {
	deleted := hosting("a-1", schema.JobStopped, "stopped by user ann", 1)
	failed := hosting("a-2", schema.JobFailed, "exit code 3", 2)
	done := hosting("a-3", schema.JobSucceeded, "", 3)
	stopping := hosting("a-5", schema.JobRunning, "", 0)
	stopping.EndedAt, stopping.Launch, stopping.Stop, stopping.StopBy = time.Time{}, &state.Launch{}, true, "user bob"
	ending := hosting("a-6", schema.JobRunning, "", 0)
	ending.EndedAt, ending.Attempts[0].StopGeneration = time.Time{}, 7
	ended := hosting("a-7", schema.JobRunning, "", 0)
	ended.EndedAt, ended.Attempts[0].Tasks = time.Time{}, []state.Task{{State: schema.TaskFailed}}
	removed := &state.RemovedActors{Namespace: "rl", Names: []string{"counter"}, At: time.Date(2026, 11, 21, 12, 9, 0, 0, time.UTC), By: "ann@laptop"}
	gone := `actor "counter" was removed from the configuration by apply of ann@laptop at 2026-11-21T12:09:00Z`
	tests := []struct {
		name      string
		hosts     []*state.Job
		removed   *state.RemovedActors
		want      string
		undecided bool
	}{
		{"none on record", nil, nil, "", false},
		{"deleted", []*state.Job{deleted}, nil, `actor "counter" was deleted: job a-1 was stopped by user ann`, false},
		{"failed", []*state.Job{failed}, nil, `actor "counter" has failed for good: job a-2: exit code 3`, false},
		{"its constructor raised", []*state.Job{unmade(hosting("a-2", schema.JobFailed, "exit code 77", 2))}, nil,
			`actor "counter" has failed for good: job a-2: its constructor raised ValueError: no such lesson`, false},
		{"done", []*state.Job{done}, nil, `actor "counter" has ended: job a-3 exited with status 0`, false},
		{"the newest counts", []*state.Job{deleted, done, failed}, nil, `actor "counter" has ended: job a-3 exited with status 0`, false},
		{"created again", []*state.Job{deleted, hosting("a-4", schema.JobPending, "", 0)}, nil, "", false},
		{"being deleted", []*state.Job{failed, stopping}, nil, `actor "counter" was deleted: job a-5 is being stopped by user bob`, false},
		{"its attempt is being stopped", []*state.Job{deleted, ending}, nil, "", true},
		{"its task has ended, its attempt has not", []*state.Job{ended}, nil, "", true},
		{"one attempt ends, another job is to host it", []*state.Job{ending, hosting("a-4", schema.JobPending, "", 0)}, nil, "", false},
		{"removed from the configuration", nil, removed, gone, false},
		{"removed after a job that failed", []*state.Job{failed}, removed, gone, false},
		{"declared again", []*state.Job{hosting("a-8", schema.JobPending, "", 0)}, removed, "", false},
		{"declared again, and its attempt is being stopped", []*state.Job{ending}, removed, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var all []host
			for _, j := range test.hosts {
				all = append(all, host{id: j.ID, job: j})
			}
			if test.removed != nil {
				all = append(all, host{id: "a-9", removed: test.removed})
			}
			if got, want := fateOf("counter", all), (fate{test.want, test.undecided}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// Who looks up an actor that was deleted is told so, until another job is to host it.
func TestLookupOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deleted := hosting("a-1", schema.JobStopped, "stopped by user ann", 1)
		r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1), deleted)
		defer r.lose()
		deathOf := func(name string) string {
			t.Helper()
			_, err := r.Lookup(asJob(t, "rl", "train", 1), &clusterapi.LookupRequest{Name: name})
			details := status.Convert(err).Details()
			if status.Code(err) != codes.NotFound || len(details) != 1 {
				t.Fatalf("got %v with %v, want NOT_FOUND with one detail", err, details)
			}
			missing, _ := details[0].(*clusterapi.ActorNotFound)
			return missing.GetDeath()
		}
		want := `actor "counter" was deleted: job a-1 was stopped by user ann`
		if got := deathOf("counter"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := deathOf("trainer"); got != "" {
			t.Errorf("of an actor that never was: %q", got)
		}
		_, err := r.Lookup(asJob(t, "ops", "train", 1), &clusterapi.LookupRequest{Name: "counter"})
		if missing, ok := status.Convert(err).Details()[0].(*clusterapi.ActorNotFound); !ok || missing.GetDeath() != "" {
			t.Errorf("another namespace is told %q", missing.GetDeath())
		}
		again := hosting("a-2", schema.JobPending, "", 0)
		again.Spec.Addr.Name = "again"
		r.board.Show(1, accesstest.RunningJob("rl", "train", 1), deleted, again)
		if got := deathOf("counter"); got != "" {
			t.Errorf("while another job is to host it: %q", got)
		}
	})
}
