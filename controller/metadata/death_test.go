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
	tests := []struct {
		name  string
		hosts []*state.Job
		want  string
	}{
		{"none on record", nil, ""},
		{"deleted", []*state.Job{deleted}, `actor "counter" was deleted: job a-1 was stopped by user ann`},
		{"failed", []*state.Job{failed}, `actor "counter" has failed for good: job a-2: exit code 3`},
		{"its constructor raised", []*state.Job{unmade(hosting("a-2", schema.JobFailed, "exit code 77", 2))},
			`actor "counter" has failed for good: job a-2: its constructor raised ValueError: no such lesson`},
		{"done", []*state.Job{done}, `actor "counter" has ended: job a-3 exited with status 0`},
		{"the newest counts", []*state.Job{deleted, done, failed}, `actor "counter" has ended: job a-3 exited with status 0`},
		{"created again", []*state.Job{deleted, hosting("a-4", schema.JobPending, "", 0)}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := death("counter", test.hosts); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
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
