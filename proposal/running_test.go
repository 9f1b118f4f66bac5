package proposal

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestCheckpointPlace(t *testing.T) {
	plain := func(name, value string) map[string]schema.Text {
		return map[string]schema.Text{name: schema.Plain(value)}
	}
	for _, test := range []struct {
		name string
		env  map[string]schema.Text
		want string
	}{
		{"none", nil, ""},
		{"another variable", plain("OUT", "/out"), ""},
		{"directory", plain("CHECKPOINT_DIR", "/ckpt"), "/ckpt"},
		{"bucket", plain("CKPT_PATH", "gs://bucket/ckpt"), "gs://bucket/ckpt"},
		{"secret", map[string]schema.Text{"CHECKPOINT_DIR": schema.Secret("/ckpt")}, ""},
		{"known later", map[string]schema.Text{"CHECKPOINT_DIR": schema.UnknownText()}, ""},
		{"run", plain("FRAY_RL_CONFIG", `{"out": "/out"}`), "/out/checkpoints"},
		{"run with its own", plain("FRAY_RL_CONFIG", `{"out": "/out", "train_worker": {"checkpoint_path": "/ckpt"}}`), "/ckpt"},
		{"run without", plain("FRAY_RL_CONFIG", `{}`), ""},
		{"run that is sealed", map[string]schema.Text{"FRAY_RL_CONFIG": schema.Secret(`{"out": "/out"}`)}, ""},
		{"no run", plain("FRAY_RL_CONFIG", `/etc/rl.json`), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkpointPlace(test.env); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestLastCheckpoint: the last checkpoint is the one with the most steps, and its age is that of
// what was written. Of what cannot be read nothing but the place is known.
func TestLastCheckpoint(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	for i, name := range []string{"step_9", "step_100", "step_20", "step_200.partial", "latest", ".tmp-300x"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		written := now.Add(-time.Duration(i+1) * time.Minute)
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "step-00000012.npz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := lastCheckpoint(dir, now), (&plan.Checkpoint{Place: dir, Last: "step_100", Seconds: 120}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := lastCheckpoint(files, now); got.Last != "step-00000012.npz" {
		t.Errorf("got %+v, want the file", got)
	}
	for _, place := range []string{"gs://bucket/ckpt", "relative", filepath.Join(dir, "missing"), t.TempDir(), filepath.Join(files, "step-00000012.npz")} {
		if got, want := lastCheckpoint(place, now), (&plan.Checkpoint{Place: place}); !cmp.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestRunningNamesCheckpoints(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	a, b := schema.ScopedAddress(schema.KindJob, "a"), schema.ScopedAddress(schema.KindJob, "b")
	job := func(env map[string]schema.Text) *state.Job {
		return &state.Job{Spec: &schema.Job{Environment: schema.Environment{Env: env}}, Attempts: []state.Attempt{{Number: 1, StartedAt: now.Add(-time.Hour)}}}
	}
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{
		a: job(map[string]schema.Text{"CHECKPOINT_DIR": schema.Plain("gs://bucket/a")}), b: job(nil),
	}}
	p := &plan.Plan{Changes: []plan.Change{{Addr: a, Verb: plan.VerbReplace}, {Addr: b, Verb: plan.VerbDelete}}}
	want := []plan.Running{
		{Addr: a, Verb: plan.VerbReplace, Attempt: 1, Since: now.Add(-time.Hour), Seconds: 3600, Checkpoint: &plan.Checkpoint{Place: "gs://bucket/a"}},
		{Addr: b, Verb: plan.VerbDelete, Attempt: 1, Since: now.Add(-time.Hour), Seconds: 3600},
	}
	if diff := cmp.Diff(want, running(t.Context(), doc, p, now), cmpopts.EquateComparable(schema.Address{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCheckpointsThatHang: a directory that does not answer keeps no plan from being made.
func TestCheckpointsThatHang(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began, answers := make(chan struct{}), make(chan struct{})
	defer close(answers)
	hangs := func() *plan.Checkpoint {
		close(began)
		<-answers
		return &plan.Checkpoint{Place: "/ckpt", Last: "step_1"}
	}
	go func() {
		<-began
		cancel()
	}()
	if got, want := orPlace(ctx, "/ckpt", hangs), (&plan.Checkpoint{Place: "/ckpt"}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
