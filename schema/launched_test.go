package schema_test

import (
	"testing"

	"github.com/fray-ml/fray/schema"
)

func TestLaunchedAddresses(t *testing.T) {
	for _, tt := range []struct {
		kind                   schema.Kind
		namespace, group, name string
		want                   string
	}{
		{schema.KindJob, "rl", "", "train", "job.rl/train"},
		{schema.KindJob, "rl", "", "train-1.5b", "job.rl/train-1.5b"},
		{schema.KindJob, "rl", "", "al/rl/rollout-0", "job.rl/al/rl/rollout-0"},
		{schema.KindJob, "rl", "pool", "server-0.1", "job_group.rl/pool.job.server-0.1"},
		{schema.KindJob, "rl", "a.b/c", "x/y", "job_group.rl/a.b/c.job.x/y"},
		{schema.KindJobGroup, "rl", "", "a.b/c", "job_group.rl/a.b/c"},
		{schema.KindReservation, "rl", "", "flex", "reservation.rl/flex"},
		{schema.KindJob, "module.eval[\"a\"].rl", "", "x.1", "module.eval[\"a\"].job.rl/x.1"},
		{schema.KindJob, "module.eval.rl", "g", "x", "module.eval.job_group.rl/g.job.x"},
	} {
		a := schema.LaunchedAddress(tt.kind, tt.namespace, tt.group, tt.name)
		if a.String() != tt.want || !a.IsLaunched() || a.LaunchedName() != tt.name {
			t.Errorf("LaunchedAddress(%s, %s, %s, %s) = %s, launched %t, name %s; want %s", tt.kind, tt.namespace, tt.group, tt.name, a, a.IsLaunched(), a.LaunchedName(), tt.want)
		}
		if got, err := schema.ParseAddress(tt.want); err != nil || got != a {
			t.Errorf("ParseAddress(%s) = %#v, %v; want %#v", tt.want, got, err, a)
		}
	}
	for _, s := range []string{"job.rl/", "job./x", "job.rl/a.job.b", "namespace.rl/x", "job.rl/x[0]", "job.1rl/x", "rl/x", "job_group.rl/pool.job.", "job.rl/a//b", "x.job.rl/a"} {
		if a, err := schema.ParseAddress(s); err == nil {
			t.Errorf("ParseAddress(%s) = %#v; want an error", s, a)
		}
	}
	if a, err := schema.ParseAddress("job.eval[\"a/b.c\"]"); err != nil || a.IsLaunched() {
		t.Errorf("a key with a slash: %#v, %v", a, err)
	}
}

func TestLaunchNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "rl-train_1.5": true, "al/rl/x": true, "_": true, "0": true,
		"": false, "-a": false, "a-": false, "/a": false, "a b": false, "a.job.b": false, "job.x": false, "é": false, "a//b": false,
	} {
		if got := schema.ValidLaunchName(name); got != want {
			t.Errorf("ValidLaunchName(%q) = %t, want %t", name, got, want)
		}
	}
}
