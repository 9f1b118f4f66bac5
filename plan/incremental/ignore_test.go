package incremental

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ignored is a declared job as it is planned for beside its record.
func ignored(cur, want *schema.Job) *schema.Job {
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{cur.Addr: {Spec: cur}}}
	desired := change.Settled(schema.Desired{Jobs: []schema.Job{*want}}, doc)
	return &desired.Jobs[0]
}

// TestEveryAttributeCanBeIgnored changes each field of a job in turn: whatever a
// plan shows of it may be named, and is left alone when it is.
func TestEveryAttributeCanBeIgnored(t *testing.T) {
	full := func() *schema.Job {
		j := newJob("a", withEnv("K", "v"))
		leaves(reflect.ValueOf(&j).Elem(), "", func(string, func()) {})
		j.Lifecycle = schema.Lifecycle{}
		// A shape is of one kind, and a reservation's where there is one.
		j.Resources.TPU, j.Resources.Reservation, j.Resources.Ports[0].Name = "", "", "http"
		return &j
	}
	fields := 0
	leaves(reflect.ValueOf(full()).Elem(), "Job", func(target string, _ func()) {
		if target == "Job.Addr" || strings.HasPrefix(target, "Job.Lifecycle") || strings.HasPrefix(target, "Job.Resources.Reservation") {
			return
		}
		fields++
		cur, want := full(), full()
		leaves(reflect.ValueOf(want).Elem(), "Job", func(path string, change func()) {
			if path == target {
				change()
			}
		})
		want.Lifecycle = schema.Lifecycle{}
		var paths []string
		for _, a := range change.ChangedAttrs(change.JobAttrs(cur), change.JobAttrs(want)) {
			if a.Verb == plan.VerbNone {
				continue
			}
			if !change.IsJobAttribute(a.Path) {
				t.Errorf("%s: %s is shown as changed and cannot be ignored", target, a.Path)
			}
			paths = append(paths, a.Path)
		}
		if slices.Contains([]string{"Job.Environment.UV absent", "Job.HealthCheck absent", "Job.BeforeStop absent", "Job.Schedule absent"}, target) {
			paths = []string{strings.Join(strings.Split(paths[0], ".")[:strings.Count(paths[0], ".")], ".")} // the block
		}
		for _, ignore := range [][]string{paths, {"all"}} {
			before := marshal(want)
			want.Lifecycle.Ignore = ignore
			if got := ignored(cur, want); !schema.EqualJobs(got, cur) {
				t.Errorf("%s: ignoring %v leaves %s changed", target, ignore, marshal(change.ChangedAttrs(change.JobAttrs(cur), change.JobAttrs(got))))
			}
			want.Lifecycle.Ignore = nil
			if marshal(want) != before {
				t.Errorf("%s: ignoring %v wrote to what it was given", target, ignore)
			}
		}
	})
	if fields < 40 {
		t.Errorf("only %d fields found", fields)
	}
}

func TestEveryAttributeOfAReservationCanBeIgnored(t *testing.T) {
	full := func() *schema.Reservation {
		r := newPool("p", "", 2)
		leaves(reflect.ValueOf(&r).Elem(), "", func(string, func()) {})
		r.Lifecycle, r.Min.TPU, r.Max.TPU = schema.Lifecycle{}, "", ""
		return &r
	}
	leaves(reflect.ValueOf(full()).Elem(), "Pool", func(target string, _ func()) {
		if target == "Pool.Addr" || strings.HasPrefix(target, "Pool.Lifecycle") {
			return
		}
		cur, want := full(), full()
		leaves(reflect.ValueOf(want).Elem(), "Pool", func(path string, change func()) {
			if path == target {
				change()
			}
		})
		want.Lifecycle = schema.Lifecycle{}
		for _, a := range change.ChangedAttrs(change.ResourceAttrs(state.Resource{Reservation: cur}), change.ResourceAttrs(state.Resource{Reservation: want})) {
			if a.Verb != plan.VerbNone {
				want.Lifecycle.Ignore = append(want.Lifecycle.Ignore, a.Path)
			}
		}
		doc := &state.Document{Resources: map[schema.Address]state.Resource{cur.Addr: {Reservation: cur}}}
		desired := change.Settled(schema.Desired{Reservations: []schema.Reservation{*want}}, doc)
		if got := &desired.Reservations[0]; !schema.EqualReservations(got, cur) || len(want.Lifecycle.Ignore) == 0 {
			t.Errorf("%s: ignoring %v leaves %+v, want %+v", target, want.Lifecycle.Ignore, got, cur)
		}
	})
}

// TestWhatIgnoringKeeps are the cases in which values hang together.
func TestWhatIgnoringKeeps(t *testing.T) {
	env := func(pairs ...string) jobOption {
		return func(j *schema.Job) {
			j.Environment.Env = map[string]schema.Text{}
			for _, pair := range pairs {
				name, value, _ := strings.Cut(pair, "=")
				j.Environment.Env[name] = schema.Plain(value)
			}
		}
	}
	project := func(bundle string) jobOption {
		return func(j *schema.Job) { j.Environment.Project, j.Environment.Bundle = ".", bundle }
	}
	http := func(j *schema.Job) { j.HealthCheck = &schema.Health{HTTP: "/", Port: "80"} }
	ports := func(names ...string) jobOption {
		return func(j *schema.Job) {
			for n, name := range names {
				j.Resources.Ports = append(j.Resources.Ports, schema.Port{Name: name, Number: n})
			}
		}
	}
	for name, c := range map[string]struct {
		cur, is []jobOption
		ignore  []string
		want    []jobOption
	}{
		"one variable":             {[]jobOption{env("A=1", "B=1")}, []jobOption{env("A=2", "B=2")}, []string{"environment.env.A"}, []jobOption{env("A=1", "B=2")}},
		"a variable that is new":   {[]jobOption{env("B=1")}, []jobOption{env("A=2", "B=1")}, []string{"environment.env.A"}, []jobOption{env("B=1")}},
		"a variable that is gone":  {[]jobOption{env("A=1")}, nil, []string{"environment.env.A"}, []jobOption{env("A=1")}},
		"a block":                  {[]jobOption{env("A=1"), project("1")}, []jobOption{env("A=2"), project("2")}, []string{"environment"}, []jobOption{env("A=1"), project("1")}},
		"a project's content":      {[]jobOption{project("1")}, []jobOption{project("2")}, []string{"environment.project"}, []jobOption{project("1")}},
		"a name that begins alike": {[]jobOption{env("A=1")}, []jobOption{env("A=2")}, []string{"environment.env.AB", "environment.en", "comm"}, []jobOption{env("A=2")}},
		"one kind of check":        {[]jobOption{healthy}, []jobOption{http}, []string{"health_check.http", "health_check.port", "health_check.interval", "health_check.threshold"}, []jobOption{healthy}},
		"a check that is new":      {nil, []jobOption{healthy}, []string{"health_check.port"}, []jobOption{healthy}},
		"one kind of shape":        {[]jobOption{onTPU("v5litepod-4")}, nil, []string{"resources.tpu", "resources.preemptible"}, []jobOption{onTPU("v5litepod-4")}},
		"one port":                 {[]jobOption{ports("a", "b")}, []jobOption{ports("b", "c")}, []string{"resources.ports.a"}, []jobOption{ports("a", "b", "c"), func(j *schema.Job) { j.Resources.Ports[1].Number, j.Resources.Ports[2].Number = 0, 1 }}},
	} {
		cur, is, want := newJob("a", c.cur...), newJob("a", append(c.is, ignoringPaths(c.ignore...))...), newJob("a", c.want...)
		if got := ignored(&cur, &is); !schema.EqualJobs(got, &want) {
			t.Errorf("%s: ignoring %v differs: %s", name, c.ignore, marshal(change.ChangedAttrs(change.JobAttrs(&want), change.JobAttrs(got))))
		}
	}
}

// The shape of a reservation is its own to ignore, not its jobs'.
func TestIgnoringWithReservations(t *testing.T) {
	old := newPool("p", "v5litepod-4", 2)
	keeps := newPool("p", "v5litepod-16", 2)
	keeps.Lifecycle.Ignore = []string{"min", "max"}
	all := ignoringPaths("all")
	for name, c := range map[string]struct {
		desired schema.Desired
		want    schema.Desired
	}{
		"the reservation ignores":   {withPools(configuration(newJob("a", from("p"))), keeps), withPools(configuration(newJob("a", from("p"))), old)},
		"only the job ignores":      {withPools(configuration(newJob("a", from("p"), all)), newPool("p", "v5litepod-16", 2)), withPools(configuration(newJob("a", from("p"))), newPool("p", "v5litepod-16", 2))},
		"the reservation is gone":   {configuration(newJob("a", onTPU("v5litepod-8"), all)), configuration(newJob("a", onTPU("v5litepod-8")))},
		"the job names another one": {withPools(configuration(newJob("a", from("q"), all)), old, newPool("q", "v5litepod-8", 1)), withPools(configuration(newJob("a", from("p"))), old)},
	} {
		w := up(t, withPools(configuration(newJob("a", from("p"))), old))
		got := change.Settled(c.desired, w.doc)
		if !schema.EqualJobs(&got.Jobs[0], &c.want.Jobs[0]) {
			t.Errorf("%s: the job differs: %s", name, marshal(change.ChangedAttrs(change.JobAttrs(&c.want.Jobs[0]), change.JobAttrs(&got.Jobs[0]))))
		}
		if len(got.Reservations) > 0 && !schema.EqualReservations(&got.Reservations[0], &c.want.Reservations[0]) {
			t.Errorf("%s: got %+v, want %+v", name, got.Reservations[0], c.want.Reservations[0])
		}
	}
}

func TestAttributesToIgnore(t *testing.T) {
	for path, want := range map[string]bool{
		"all": true, "command": true, "environment": true, "environment.env": true, "environment.env.A.b": true, "labels.team": true,
		"resources.ports.http": true, "resources.tpu": true, "health_check": true, "environment.uv.python": true,
		"": false, "environment.env.": false, "environ": false, "comand": false, "resources.tpu.x": false, "lifecycle": false, "addr": false, "min.tpu": false,
	} {
		if got := change.IsJobAttribute(path); got != want {
			t.Errorf("IsJobAttribute(%q): got %t, want %t", path, got, want)
		}
	}
	for path, want := range map[string]bool{"all": true, "min": true, "max.slices": true, "ttl": true, "command": false, "min.nothing": false} {
		if got := change.IsReservationAttribute(path); got != want {
			t.Errorf("IsReservationAttribute(%q): got %t, want %t", path, got, want)
		}
	}
	if paths := change.JobAttributes(); !slices.Contains(paths, "environment.uv") || !slices.IsSorted(paths) {
		t.Errorf("got %v", paths)
	}
	if paths := change.ReservationAttributes(); !slices.Contains(paths, "min.tpu") {
		t.Errorf("got %v", paths)
	}
}

// The declared value is that which a job starts with; afterwards, the recorded one.
func TestIgnoringGoesOn(t *testing.T) {
	a := jobAddr("a")
	with := func(value string, more ...jobOption) schema.Desired {
		return configuration(newJob("a", append(more, withEnv("V", value))...))
	}
	ignore := ignoringPaths("environment.env.V")
	w := up(t, with("1", ignore))
	if got := w.job(a).Spec.Environment.Env["V"]; got != schema.Plain("1") {
		t.Fatalf("it began with %v, want the declared value", got)
	}
	for range 2 {
		w.accept(with("2", ignore))
		if p := w.settle(time.Minute); !p.Empty() || w.job(a).Attempt != 1 {
			t.Errorf("got %+v, attempt %d; want nothing", p.Changes, w.job(a).Attempt)
		}
	}
	w.mark(a, func(j *state.Job) { j.Replace = true })
	w.settle(time.Minute)
	if got := w.job(a).Spec.Environment.Env["V"]; w.job(a).Attempt != 2 || got != schema.Plain("1") {
		t.Errorf("replaced by itself it has %v in attempt %d, want the recorded value in 2", got, w.job(a).Attempt)
	}
	w.doc = w.planner.Refined(w.doc, new(with("3", ignore)))
	if p := w.settle(time.Minute); !p.Empty() || w.job(a).Attempt != 2 {
		t.Errorf("with new values: got %+v, attempt %d; want nothing", p.Changes, w.job(a).Attempt)
	}
	w.accept(with("2"))
	w.settle(time.Minute)
	if got := w.job(a).Spec.Environment.Env["V"]; w.job(a).Attempt != 3 || got != schema.Plain("2") {
		t.Errorf("ignored no more it has %v in attempt %d, want 2 in 3", got, w.job(a).Attempt)
	}
}
