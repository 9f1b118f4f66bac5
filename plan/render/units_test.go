package render_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                "0ms",
		850 * time.Millisecond:           "850ms",
		12*time.Second + 999e6:           "12s",
		3*time.Minute + 5*time.Second:    "3m05s",
		2*time.Hour + 4*time.Minute + 59: "2h04m",
		79*time.Hour + 59*time.Minute:    "3d07h",
		-90 * time.Second:                "-1m30s",
	} {
		if got := render.Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, "never"},
		{now.Add(-12 * time.Second), "12s ago"},
		{now.Add(185 * time.Second), "in 3m05s"},
	} {
		if got := render.Since(test.t, now); got != test.want {
			t.Errorf("Since(%v) = %q, want %q", test.t, got, test.want)
		}
	}
}

func TestCapacity(t *testing.T) {
	for _, test := range []struct {
		name string
		c    plan.Capacity
		want string
	}{
		{"nothing", plan.Capacity{Provider: "local"}, "local 0 slices"},
		{"one", plan.Capacity{Provider: "local", After: plan.Amount{Slices: 1, Hosts: 1}}, "local 0 -> 1 slice, 0 -> 1 host"},
		{
			"one core", plan.Capacity{Provider: "local", After: plan.Amount{CPU: 1}, Limit: plan.Amount{CPU: 1}},
			"local 0 slices, 0 -> 1 CPU (limit 1 CPU)",
		},
		{
			"everything", plan.Capacity{
				Provider: "gcp",
				Before:   plan.Amount{Slices: 2, Hosts: 11, Chips: 32, CPU: 1.5, Memory: 1 << 30},
				After:    plan.Amount{Slices: 5, Hosts: 11, Chips: 32, CPU: 1.5, Memory: 3 << 29},
				Limit:    plan.Amount{Slices: 8, Hosts: 1, Chips: 64, CPU: 4, Memory: 1 << 34},
			},
			"gcp 2 -> 5 slices, 11 hosts, 32 chips, 1.5 CPUs, 1 GiB -> 1.5 GiB memory (limit 8 slices, 1 host, 64 chips, 4 CPUs, 16 GiB memory)",
		},
	} {
		if got := render.Capacity(test.c); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestChangeIsWhatTextShows(t *testing.T) {
	c := plan.Change{
		Addr: schema.Address{Kind: schema.KindJob, Name: "a"}, Verb: plan.VerbRestart,
		Attrs: []*plan.AttrChange{{Path: "command", Before: jsonOf([]string{"a"}), After: jsonOf([]string{"b"}), Verb: plan.VerbRestart}},
	}
	var one, all bytes.Buffer
	if err := render.Change(&one, &c, render.Options{Color: true}); err != nil {
		t.Fatal(err)
	}
	if err := render.Text(&all, &plan.Plan{Changes: []plan.Change{c}}, render.Options{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(all.String(), one.String()) || !strings.Contains(one.String(), "job.a") {
		t.Errorf("got\n%s\nwhich is no part of\n%s", one.String(), all.String())
	}
}

func TestWordsOfVerbs(t *testing.T) {
	for _, test := range []struct {
		verb                 plan.Verb
		symbol, doing, ended string
	}{
		{plan.VerbCreate, "  +", "creating", "created"},
		{plan.VerbUpdate, "  ~", "updating", "updated"},
		{plan.VerbRestart, "  ~", "restarting", "restarted"},
		{plan.VerbReplace, "-/+", "replacing", "replaced"},
		{plan.VerbDelete, "  -", "deleting", "deleted"},
		{plan.VerbNone, "   ", "leaving", "left as it is"},
	} {
		got := [3]string{render.Symbol(test.verb, false), render.Doing(test.verb), render.Done(test.verb)}
		if want := [3]string{test.symbol, test.doing, test.ended}; got != want {
			t.Errorf("%s: got %q, want %q", test.verb, got, want)
		}
	}
	if got, want := render.Symbol(plan.VerbReplace, true), "\x1b[31m-\x1b[0m/\x1b[32m+\x1b[0m"; got != want {
		t.Errorf("colored replace: got %q, want %q", got, want)
	}
}

type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

func TestWriteErrorsAreReported(t *testing.T) {
	want := errors.New("no space left on device")
	p := &plan.Plan{Changes: []plan.Change{{Addr: schema.Address{Kind: schema.KindJob, Name: "a"}, Verb: plan.VerbCreate}}}
	for name, got := range map[string]error{
		"Text":   render.Text(full{want}, p, render.Options{}),
		"JSON":   render.JSON(full{want}, p, meta()),
		"Change": render.Change(full{want}, &p.Changes[0], render.Options{}),
	} {
		if !errors.Is(got, want) {
			t.Errorf("%s: got error %v, want %v", name, got, want)
		}
	}
}

func TestJSONRefusesWhatIsNone(t *testing.T) {
	p := &plan.Plan{Changes: []plan.Change{{
		Addr:  schema.Address{Kind: schema.KindJob, Name: "a"},
		Attrs: []*plan.AttrChange{{Path: "command", After: []byte("{")}},
	}}}
	if err := render.JSON(&bytes.Buffer{}, p, meta()); err == nil {
		t.Error("got no error for a value that is no JSON")
	}
}
