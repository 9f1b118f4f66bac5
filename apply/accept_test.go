package apply_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func address(t *testing.T, s string) schema.Address {
	t.Helper()
	a, err := schema.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// declared makes jobs that depend on others: {"job.b", "job.a"} is b after a.
func declared(t *testing.T, command string, list ...[]string) schema.Desired {
	t.Helper()
	var d schema.Desired
	for _, names := range list {
		j := schema.Job{Addr: address(t, names[0]), Namespace: "n", Command: []schema.Text{schema.Plain(command)}}
		for _, on := range names[1:] {
			j.DependsOn = append(j.DependsOn, address(t, on))
		}
		d.Jobs = append(d.Jobs, j)
	}
	return d
}

func commands(d schema.Desired) map[string]string {
	out := map[string]string{}
	for _, j := range d.Jobs {
		out[j.Addr.String()] = j.Command[0].String()
	}
	return out
}

func TestTarget(t *testing.T) {
	old := declared(t, "old", []string{"job.a"}, []string{"job.b", "job.a"}, []string{"job.c"}, []string{"job.gone"})
	files := declared(t, "new", []string{"job.a"}, []string{"job.b", "job.a"}, []string{"job.c"}, []string{"job.d[0]"}, []string{"job.d[1]"})
	for _, tt := range []struct {
		name    string
		targets []string
		want    map[string]string
	}{
		{"one", []string{"job.c"}, map[string]string{"job.a": "old", "job.b": "old", "job.c": "new", "job.gone": "old"}},
		{"with what it needs", []string{"job.b"}, map[string]string{"job.a": "new", "job.b": "new", "job.c": "old", "job.gone": "old"}},
		{"one that the files dropped", []string{"job.gone"}, map[string]string{"job.a": "old", "job.b": "old", "job.c": "old"}},
		{"all instances", []string{"job.d"}, map[string]string{"job.a": "old", "job.b": "old", "job.c": "old", "job.d[0]": "new", "job.d[1]": "new", "job.gone": "old"}},
		{"one instance", []string{"job.d[1]"}, map[string]string{"job.a": "old", "job.b": "old", "job.c": "old", "job.d[1]": "new", "job.gone": "old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var targets []schema.Address
			for _, s := range tt.targets {
				targets = append(targets, address(t, s))
			}
			if diff := cmp.Diff(tt.want, commands(apply.Target(old, files, targets))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestTargetOfAReservation: its group settles where it is.
func TestTargetOfAReservation(t *testing.T) {
	group := address(t, "job_group.g")
	files := declared(t, "new", []string{"job_group.g.job.a"})
	files.Groups = []schema.JobGroup{{Addr: group, SameZone: true}}
	files.Reservations = []schema.Reservation{{Addr: address(t, "job_group.g.reservation.pool")}}
	for target, want := range map[string][3]int{
		"job_group.g.reservation.pool": {1, 1, 0},
		"job_group.g.job.a":            {1, 0, 1},
		"job_group.g":                  {1, 1, 1},
	} {
		got := apply.Target(schema.Desired{}, files, []schema.Address{address(t, target)})
		if found := [3]int{len(got.Groups), len(got.Reservations), len(got.Jobs)}; found != want {
			t.Errorf("%s: got %v groups, reservations and jobs, want %v", target, found, want)
		}
	}
}

func TestWithout(t *testing.T) {
	base := declared(t, "x", []string{"job.a"}, []string{"job.b", "job.a"}, []string{"job.c", "job.b"}, []string{"job.d"}, []string{"job_group.g.job.x"})
	for _, tt := range []struct {
		target string
		want   []string
	}{
		{"job.a", []string{"job.d", "job_group.g.job.x"}},
		{"job.c", []string{"job.a", "job.b", "job.d", "job_group.g.job.x"}},
		{"job_group.g", []string{"job.a", "job.b", "job.c", "job.d"}},
	} {
		t.Run(tt.target, func(t *testing.T) {
			var got []string
			for _, j := range apply.Without(base, []schema.Address{address(t, tt.target)}).Jobs {
				got = append(got, j.Addr.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAcceptMarksAndLeavesTheGivenDocument(t *testing.T) {
	a, b := address(t, "job.a"), address(t, "job.b")
	doc := &state.Document{Revision: 4, Jobs: map[schema.Address]*state.Job{a: {ID: "a"}, b: {ID: "b"}}}
	next := apply.Accept(doc, apply.Request{Replace: []schema.Address{a}, Stop: []schema.Address{b}})
	if !next.Jobs[a].Replace || next.Jobs[a].Stop || !next.Jobs[b].Stop || next.Revision != 5 {
		t.Errorf("got %+v, %+v, revision %d", next.Jobs[a], next.Jobs[b], next.Revision)
	}
	if doc.Jobs[a].Replace || doc.Jobs[b].Stop || doc.Revision != 4 {
		t.Error("the given document was changed")
	}
}

// What names a job that is replaced by itself is replaced with it, and only that.
func TestReplacedWithWhatItNames(t *testing.T) {
	data, by, other := address(t, "job.data"), address(t, "job.by"), address(t, "job.other")
	desired := declared(t, "run", []string{"job.by"}, []string{"job.data"}, []string{"job.other"})
	desired.Jobs[0].Lifecycle.TriggeredBy = []schema.Trigger{{Addr: data}}
	desired.Jobs[2].Lifecycle.TriggeredBy = []schema.Trigger{{Addr: data, Path: "command"}}
	doc := apply.Accept(&state.Document{Lineage: "abcdefghijklmnop"}, apply.Request{Desired: desired})
	for i := range doc.Desired.Jobs {
		spec := doc.Desired.Jobs[i]
		doc.Jobs[spec.Addr] = &state.Job{Spec: &spec, Attempt: 1}
	}
	next := apply.Accept(doc, apply.Request{Desired: desired, Replace: []schema.Address{data}})
	p := reconcile.Diff(&next.Desired, next, &plan.Observed{}, time.Now())
	got := map[schema.Address]string{}
	for _, c := range p.Changes {
		got[c.Addr] = string(c.Verb) + " " + c.Reason
	}
	want := map[schema.Address]string{data: "replace asked for by --replace", by: "replace replace_triggered_by", other: "no-op "}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b schema.Address) bool { return a == b })); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// What is not targeted is not replaced; the next apply of all does it.
func TestTargetLeavesTriggersAlone(t *testing.T) {
	data, by := address(t, "job.data"), address(t, "job.by")
	files := func(command string) schema.Desired {
		d := declared(t, command, []string{"job.by"}, []string{"job.data"})
		d.Jobs[0].Command = nil
		d.Jobs[0].Lifecycle.TriggeredBy = []schema.Trigger{{Addr: data}}
		return d
	}
	doc := apply.Accept(&state.Document{Lineage: "abcdefghijklmnop"}, apply.Request{Desired: files("old")})
	for i := range doc.Desired.Jobs {
		spec := doc.Desired.Jobs[i]
		doc.Jobs[spec.Addr] = &state.Job{Spec: &spec, Attempt: 1}
	}
	verb := func(doc *state.Document) plan.Verb {
		for _, c := range reconcile.Diff(&doc.Desired, doc, &plan.Observed{}, time.Now()).Changes {
			if c.Addr == by {
				return c.Verb
			}
		}
		return ""
	}
	targeted := apply.Accept(doc, apply.Request{Desired: apply.Target(doc.Desired, files("new"), []schema.Address{data})})
	if got := verb(targeted); got != plan.VerbNone {
		t.Errorf("with another target: got %s, want %s", got, plan.VerbNone)
	}
	if got := verb(apply.Accept(targeted, apply.Request{Desired: files("new")})); got != plan.VerbReplace {
		t.Errorf("with all: got %s, want %s", got, plan.VerbReplace)
	}
}

func TestScopeKeepsToWhatThePlanNames(t *testing.T) {
	a, b, c := address(t, "job.a"), address(t, "job.b"), address(t, "job.c")
	p := &plan.Plan{
		Changes: []plan.Change{{Addr: a, Verb: plan.VerbCreate}, {Addr: b, Verb: plan.VerbNone}},
		Drift:   []plan.Drift{{Addr: c, Slice: "c-0"}},
	}
	s := apply.ScopeOf(p)
	if !s.Names(a) || s.Names(b) || !s.Names(c) {
		t.Errorf("scope %+v, want a and c without b", s)
	}
	if (apply.Scope{}).Names(a) {
		t.Error("the zero scope names something")
	}
}

// Who is to wait for a job that has ended meanwhile deletes its slices, too: the
// plan did not name it, but nothing runs there.
func TestScopeCoversSlicesOfWhatHasEnded(t *testing.T) {
	ended, runs := address(t, "job.ended"), address(t, "job.runs")
	p := &plan.Plan{
		Pending: []plan.Pending{{Addr: ended}, {Addr: runs}},
		Next: &state.Document{Jobs: map[schema.Address]*state.Job{
			ended: {Status: schema.JobSucceeded}, runs: {Status: schema.JobRunning},
		}},
	}
	if got := (apply.Scope{Ended: true}).Pending(p); len(got) != 1 || got[0].Addr != ended {
		t.Errorf("got %v, want what waits for %s alone", got, ended)
	}
	if got := (apply.Scope{}).Pending(p); len(got) != 0 {
		t.Errorf("the zero scope waits for %v", got)
	}
}

// A slice that is recorded as going is waited for until it is out of the records, and
// so is the answer about one in doubt, but neither is of what the plan does not name.
func TestScopeWaitsForSlicesOnTheirWayOut(t *testing.T) {
	mine, other := address(t, "job.mine"), address(t, "job.other")
	spec := func(name string, owner schema.Address) schema.SliceSpec {
		return schema.SliceSpec{Name: name, Owner: owner}
	}
	going := state.Termination{Cause: state.CauseReplaced}
	p := &plan.Plan{
		Doubts: []plan.Doubt{
			{Slice: spec("mine-0", mine), Kind: plan.DoubtAbsent, Open: true},
			{Slice: spec("mine-1", mine), Kind: plan.DoubtAbsent},
			{Slice: spec("other-0", other), Kind: plan.DoubtAbsent, Open: true},
		},
		Next: &state.Document{Slices: map[string]*state.Slice{
			"mine-0":  {Spec: spec("mine-0", mine), Terminating: going},
			"mine-2":  {Spec: spec("mine-2", mine)},
			"other-0": {Spec: spec("other-0", other), Terminating: going},
		}},
	}
	s := apply.Scope{Addrs: map[schema.Address]bool{mine: true}}
	if got := s.Leaving(p); len(got) != 1 || got[0].Spec.Name != "mine-0" {
		t.Errorf("%d slices are waited for, want mine-0 alone", len(got))
	}
	if got := s.Doubts(p); len(got) != 1 || got[0].Slice.Name != "mine-0" {
		t.Errorf("doubts %v are waited for, want that of mine-0 alone", got)
	}
}

// Who removed an actor from the configuration is recorded, until it is declared again.
func TestAcceptRecordsWhoRemovedAnActor(t *testing.T) {
	actor := schema.Job{Addr: schema.Address{Kind: schema.KindActorService, Name: "counter"}}
	actor.Environment.Env = map[string]schema.Text{schema.ActorNamesVariable: schema.Plain(`["counter"]`)}
	plain := schema.Job{Addr: schema.Address{Kind: schema.KindJob, Name: "plain"}}
	launched := schema.Job{Addr: schema.LaunchedAddress(schema.KindJob, "default", "", "b"), Environment: actor.Environment}
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{
		actor.Addr: {Spec: &actor}, plain.Addr: {Spec: &plain}, launched.Addr: {Spec: &launched, Launch: &state.Launch{}},
	}}
	by := func(doc *state.Document) [3]string {
		return [3]string{doc.Jobs[actor.Addr].RemovedBy, doc.Jobs[plain.Addr].RemovedBy, doc.Jobs[launched.Addr].RemovedBy}
	}
	removed := apply.Accept(doc, apply.Request{By: "ann@laptop"})
	if got := by(removed); got != [3]string{"ann@laptop", "", ""} {
		t.Errorf("removed by %q", got)
	}
	if got := by(apply.Accept(removed, apply.Request{By: "bob@laptop"})); got[0] != "ann@laptop" {
		t.Errorf("after another apply it was removed by %q", got[0])
	}
	if got := by(apply.Accept(removed, apply.Request{By: "bob@laptop", Desired: schema.Desired{Jobs: []schema.Job{actor}}})); got[0] != "" {
		t.Errorf("declared again, it was removed by %q", got[0])
	}
	renamed := actor
	renamed.Environment.Env = map[string]schema.Text{schema.ActorNamesVariable: schema.Plain(`["other"]`)}
	if got := by(apply.Accept(doc, apply.Request{By: "ann@laptop", Desired: schema.Desired{Jobs: []schema.Job{renamed}}})); got[0] != "ann@laptop" {
		t.Errorf("under another name, it was removed by %q", got[0])
	}
	if doc.Jobs[actor.Addr].RemovedBy != "" {
		t.Error("the given document was changed")
	}
}
