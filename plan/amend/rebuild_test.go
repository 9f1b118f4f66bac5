package amend_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

const random = "0123456789abcdef"

func (w *world) lost(desired *schema.Desired) amend.RebuildInput {
	return amend.RebuildInput{
		Observed: w.observe(), Logs: slices.Sorted(maps.Keys(w.logs)), Desired: desired, Random: random, At: w.now, Kept: true,
	}
}

// rebuild loses the state and makes a new one.
func (w *world) rebuild(desired *schema.Desired) amend.Report {
	w.t.Helper()
	doc, report, err := amend.Rebuild(w.lost(desired))
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.doc = doc
	return report
}

func TestRebuild(t *testing.T) {
	withLimit := func(d schema.Desired) schema.Desired {
		d.Providers = []schema.Provider{{Name: schema.ProviderLocal, Slices: 20}}
		return d
	}
	tests := []struct {
		name  string
		files schema.Desired
	}{
		{"jobs", withLimit(jobs(at(t, "job.a", gang(2)), at(t, "job.b", needs(address(t, "job.a"))), at(t, "actor_service.s[0]")))},
		{"a group", jobs(at(t, "job_group.g.job.x"), at(t, "job_group.g.job.y", gang(1)))},
		{"a pool", files([]schema.Job{at(t, "job.a", from("p", 2)), at(t, "job.b", from("p", 1))}, pool("p", 5))},
	}
	for _, test := range tests {
		for _, readable := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, files %t", test.name, readable), func(t *testing.T) {
				w := newWorld(t, test.files)
				w.settle()
				w.preempt(w.job(test.files.Jobs[0].Addr).Slices[0])
				w.settle()
				was, starts := w.doc, len(w.starts)
				w.ended = nil
				given := &test.files
				if !readable {
					given = nil
				}
				report := w.rebuild(given)
				if w.doc.Stack() != was.Stack() || w.doc.Lineage != was.Stack()+random || w.doc.Epoch != 2 {
					t.Errorf("lineage %s, epoch %d, want the old mark, a new rest, epoch 2", w.doc.Lineage, w.doc.Epoch)
				}
				if len(report.Unknown)+len(report.LeftOver)+len(report.New) > 0 || len(report.Recovered) != len(was.Jobs)+len(test.files.Reservations) {
					t.Errorf("report %+v, want everything recovered", report)
				}
				w.mustStay("with the new snapshot", w.doc.Desired)
				for range 5 {
					w.step() // what only watches does nothing either
				}
				w.mustStay("after a while", w.doc.Desired)
				if readable {
					w.mustStay("with the files", test.files)
				}
				for addr, j := range was.Jobs {
					is := w.job(addr)
					if is.ID != j.ID || is.Attempt != j.Attempt || is.Preemptions != j.Preemptions || is.Digest != j.Digest || !is.Ready ||
						!slices.Equal(is.Slices, j.Slices) {
						t.Errorf("%s is %+v, was %+v", addr, is, j)
					}
				}
				w.apply(test.files)
				if len(w.starts) > starts || len(w.ended) > 0 {
					t.Errorf("started %v, ended %v, want nothing", w.starts[starts:], w.ended)
				}
				first := w.job(test.files.Jobs[0].Addr)
				w.preempt(first.Slices[0])
				w.settle()
				if is := w.job(first.Spec.Addr); is.Attempt != 3 || is.Preemptions != 2 || !is.Ready {
					t.Errorf("after another preemption: %+v, want attempt 3 after 2 preemptions", is)
				}
			})
		}
	}
}

func TestRebuildDoesNotRunWhatHasRun(t *testing.T) {
	js := []schema.Job{at(t, "job.done"), at(t, "job.runs")}
	w := newWorld(t, files(js))
	w.ends = func(run *state.Run) schema.TaskState {
		if run != nil && run.Job.Name == "done" {
			return schema.TaskSucceeded
		}
		return schema.TaskRunning
	}
	w.settle()
	if s := w.job(address(t, "job.done")).Status; s != schema.JobSucceeded || len(w.slices) != 1 {
		t.Fatalf("job.done is %s with %d slices; this test wants it done and gone", s, len(w.slices))
	}
	declared := files(append(js, at(t, "job.fresh")))
	report := w.rebuild(&declared)
	done := w.job(address(t, "job.done"))
	if done.Status != schema.JobStopped || !strings.Contains(done.Reason, "--replace='job.done'") {
		t.Errorf("job.done is %s: %q, want it stopped and how to start it", done.Status, done.Reason)
	}
	if len(report.Unknown) != 1 || report.Unknown[0].Addr != done.Spec.Addr || len(report.New) != 1 || report.New[0].Addr != address(t, "job.fresh") {
		t.Errorf("report %+v, want job.done unknown and job.fresh new", report)
	}
	starts := len(w.starts)
	w.apply(declared)
	if started := w.starts[starts:]; len(started) != 1 || !strings.HasPrefix(started[0], "fresh-") {
		t.Errorf("started %v, want job.fresh only", started)
	}
	replaced := *w.job(done.Spec.Addr)
	replaced.Replace = true
	next := w.doc.Clone()
	next.Jobs[done.Spec.Addr] = &replaced
	w.doc = next
	w.settle()
	if s := w.job(done.Spec.Addr).Status; s != schema.JobSucceeded {
		t.Errorf("job.done is %s after it was replaced, want it run", s)
	}
}

// What was recorded of jobs outlives their slices and the state: each is as it
// ended, by its id, wherever it is now, and nothing of it runs again.
func TestRebuildTakesEndsFromTheRecords(t *testing.T) {
	w := newWorld(t, files([]schema.Job{at(t, "job.runs")}))
	w.settle()
	ended := w.now.Add(-time.Hour)
	declared := files([]schema.Job{at(t, "job.runs"), at(t, "job.good"), at(t, "job.bad"), at(t, "job.stopped"), at(t, "job.gone"), at(t, "job.new"), at(t, "job.fresh")})
	in := w.lost(&declared)
	in.Addrs = map[string]schema.Address{"old-000000000001": address(t, "job.new")}
	in.Jobs = map[string]state.JobRecord{}
	for _, r := range []state.JobRecord{
		{ID: "good-000000000001", Addr: address(t, "job.good"), Status: schema.JobSucceeded, Attempt: 2, Failures: 1, EndedAt: ended},
		{ID: "good-000000000000", Addr: address(t, "job.good"), Status: schema.JobFailed, EndedAt: ended.Add(-time.Hour)},
		{ID: "bad-000000000001", Addr: address(t, "job.bad"), Status: schema.JobFailed, Reason: "exit status 3", Attempt: 1, Failures: 1, EndedAt: ended},
		{ID: "stopped-000000000001", Addr: address(t, "job.stopped"), Status: schema.JobStopped, Attempt: 1, EndedAt: ended},
		{ID: "gone-000000000001", Addr: address(t, "job.gone"), Status: schema.JobRunning},
		{ID: "old-000000000001", Addr: address(t, "job.old"), Status: schema.JobSucceeded, Attempt: 1, EndedAt: ended},
		{ID: "launched-000000000001", Addr: address(t, "job.launched"), Status: schema.JobSucceeded, Attempt: 1, EndedAt: ended},
	} {
		in.Jobs[r.ID] = r
	}
	doc, report, err := amend.Rebuild(in)
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]schema.JobStatus{
		"job.runs": schema.JobRunning, "job.good": schema.JobSucceeded, "job.bad": schema.JobFailed,
		"job.stopped": schema.JobStopped, "job.gone": schema.JobStopped, "job.new": schema.JobSucceeded,
	} {
		if j := doc.Jobs[address(t, addr)]; j == nil || j.Status != want {
			t.Errorf("%s: got %+v, want it %s", addr, j, want)
		}
	}
	good := doc.Jobs[address(t, "job.good")]
	if good.ID != "good-000000000001" || good.Attempt != 2 || good.Failures != 1 || !good.EndedAt.Equal(ended) {
		t.Errorf("got %+v, want it as it was recorded", good)
	}
	if len(report.Ended) != 4 || len(report.Unknown) != 1 || len(report.New) != 1 || report.New[0].Addr != address(t, "job.fresh") || len(doc.Jobs) != 6 {
		t.Errorf("got report %+v and %d jobs, want four ended, one unknown, one new", report, len(doc.Jobs))
	}
	starts := len(w.starts)
	w.doc = doc
	w.apply(declared)
	if started := w.starts[starts:]; len(started) != 1 || !strings.HasPrefix(started[0], "fresh-") {
		t.Errorf("started %v, want job.fresh only", started)
	}

	// Where no records were ever kept, there being none says nothing.
	in = w.lost(&declared)
	in.Kept, in.Logs = false, nil
	if doc, report, err = amend.Rebuild(in); err != nil {
		t.Fatal(err)
	}
	if j := doc.Jobs[address(t, "job.bad")]; j == nil || j.Status != schema.JobStopped || !strings.Contains(j.Reason, "nothing is left that says whether it has run") || len(report.New) != 0 {
		t.Errorf("without records: got %+v, new %v, want it stopped, which is said", j, report.New)
	}
}

// All hosts of a gang say that it has succeeded, and part of it is gone: it is
// not run again.
func TestRebuildKnowsSuccess(t *testing.T) {
	desired := jobs(at(t, "job.a", gang(2)))
	w := newWorld(t, desired)
	w.settle()
	w.ends = func(*state.Run) schema.TaskState { return schema.TaskSucceeded }
	names := w.job(address(t, "job.a")).Slices
	for _, name := range names {
		w.live(name)
	}
	delete(w.slices, names[0])
	w.slices[names[1]].Phase = schema.SliceDeleting
	starts := len(w.starts)
	w.rebuild(&desired)
	if last := w.job(address(t, "job.a")).Last(); last.Outcome != schema.TaskSucceeded || last.EndedAt.IsZero() {
		t.Errorf("its attempt is %+v, want it succeeded", last)
	}
	delete(w.slices, names[1])
	w.apply(desired)
	if j := w.job(address(t, "job.a")); j.Status != schema.JobSucceeded || len(w.starts) > starts {
		t.Errorf("job.a is %s, started %v, want it succeeded", j.Status, w.starts[starts:])
	}
}

// An attempt whose slices are being deleted, without success, ended for a
// reason that is not known.
func TestRebuildLeavesWhatIsBeingDeleted(t *testing.T) {
	desired := jobs(at(t, "job.a", gang(2)))
	w := newWorld(t, desired)
	w.settle()
	names := w.job(address(t, "job.a")).Slices
	delete(w.slices, names[0])
	w.slices[names[1]].Phase = schema.SliceDeleting
	report := w.rebuild(&desired)
	if j := w.job(address(t, "job.a")); j.Status != schema.JobStopped || len(report.Unknown) != 1 {
		t.Errorf("job.a is %s, report %+v, want it stopped", j.Status, report)
	}
}

func TestRebuildOfWhatWaits(t *testing.T) {
	desired := jobs(at(t, "job.a", gang(2)))
	w := newWorld(t, desired)
	w.step()
	if len(w.slices) != 2 || len(w.starts) > 0 {
		t.Fatalf("%d slices, started %v; this test wants slices that wait", len(w.slices), w.starts)
	}
	w.rebuild(&desired)
	w.settle()
	if j := w.job(address(t, "job.a")); !j.Ready || len(w.ended) > 0 {
		t.Errorf("job.a is %+v, ended %v, want it started on its slices", j, w.ended)
	}
}

// Undeclared jobs go on, and idle slices without an owner are left alone.
func TestRebuildOfTheUndeclared(t *testing.T) {
	w := newWorld(t, jobs(at(t, "job.a", gang(1)), at(t, "job.b")))
	w.settle()
	b := w.job(address(t, "job.b")).Slices[0]
	a := w.assignments[b]
	a.Run, a.Generation = nil, a.Generation+1
	w.assignments[b] = a
	w.live(b)
	w.ended = nil
	empty := schema.Desired{}
	w.logs["x-0123456789ab"] = true
	report := w.rebuild(&empty)
	w.mustStay("with the new snapshot", w.doc.Desired)
	if _, unmanaged := w.doc.Unmanaged[b]; !unmanaged || len(report.LeftOver) != 3 {
		t.Errorf("unmanaged %v, report %+v, want slice %s and the logs of two left over", w.doc.Unmanaged, report.LeftOver, b)
	}
	if len(report.Recovered) != 1 || !strings.Contains(report.Recovered[0].Text, "fray state mv") {
		t.Errorf("recovered %+v, want job.a and what to do about it", report.Recovered)
	}
	p := w.diff(empty) // the files, applied, delete job.a, and only that
	if len(p.Changes) != 1 || p.Changes[0].Verb != plan.VerbDelete {
		t.Errorf("changes %+v, want job.a deleted", p.Changes)
	}
}

// What was moved runs under its old address; the files, or a later move, give the new one.
func TestRebuildAfterMoves(t *testing.T) {
	w := newWorld(t, files([]schema.Job{at(t, "job.a", gang(2)), at(t, "job.u", from("p", 1))}, pool("p", 3)))
	w.settle()
	id := w.job(address(t, "job.a")).ID
	w.move("job.a", "job.b")
	w.move("reservation.p", "reservation.q")
	after := files([]schema.Job{at(t, "job.a", gang(1)), at(t, "job.b", gang(2)), at(t, "job.u", from("q", 1))}, pool("q", 3))
	w.apply(after)
	starts := len(w.starts)
	if _, _, err := amend.Rebuild(w.lost(&after)); err == nil || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), w.job(address(t, "job.a")).ID) {
		t.Errorf("got %v, want an error that names both jobs", err)
	}
	in := w.lost(&after)
	in.Addrs = map[string]schema.Address{id: address(t, "job.b")}
	doc, _, err := amend.Rebuild(in)
	if err != nil {
		t.Fatal(err)
	}
	w.doc = doc
	w.mustStay("with the files", after)
	w.twoOnAHost()
	w.apply(after)
	if len(w.ended) > 0 || len(w.starts) > starts {
		t.Errorf("started %v, ended %v, want nothing", w.starts[starts:], w.ended)
	}
}

func TestRebuildRefuses(t *testing.T) {
	desired := jobs(at(t, "job.a"))
	fresh := func() *world {
		w := newWorld(t, desired)
		w.settle()
		return w
	}
	tests := []struct {
		name   string
		change func(*world, *amend.RebuildInput)
		says   string
	}{
		{"a provider that does not answer", func(_ *world, in *amend.RebuildInput) {
			in.Observed.Unreachable[schema.ProviderGCP] = plan.Unreachable{Kind: schema.ErrorUnavailable, Text: "503"}
		}, "provider gcp cannot be asked"},
		{"nothing there", func(_ *world, in *amend.RebuildInput) { in.Observed = newWorld(t, desired).observe() }, "nothing to rebuild from"},
		{"two stacks", func(_ *world, in *amend.RebuildInput) {
			in.Observed.Assignments["x"] = plan.Assigned{Assignment: state.Assignment{Slice: "x", Stack: "zyxwvutsrqpo"}}
		}, "abcdefghijkl and zyxwvutsrqpo"},
		{"a stack that was migrated", func(w *world, in *amend.RebuildInput) {
			for name, a := range in.Observed.Assignments {
				a.MovedTo = "gs://elsewhere"
				in.Observed.Assignments[name] = a
			}
		}, "kept in gs://elsewhere now"},
		{"an assignment that cannot be read", func(_ *world, in *amend.RebuildInput) {
			in.Observed.Damaged = map[string]string{slices.Sorted(maps.Keys(in.Observed.Assignments))[0]: "unexpected end of JSON"}
		}, "is to run cannot be read (unexpected end of JSON)"},
		{"another stack", func(_ *world, in *amend.RebuildInput) { in.Stack = "zyxwvutsrqpo" }, "nothing carries the mark zyxwvutsrqpo; there is abcdefghijkl"},
	}
	for _, test := range tests {
		w := fresh()
		in := w.lost(&desired)
		test.change(w, &in)
		if doc, _, err := amend.Rebuild(in); err == nil || !strings.Contains(err.Error(), test.says) || doc != nil {
			t.Errorf("%s: got %v, want an error that says %q", test.name, err, test.says)
		}
	}
	w := fresh()
	in := w.lost(&desired)
	in.Observed.Assignments["x"] = plan.Assigned{Assignment: state.Assignment{Slice: "x", Stack: "zyxwvutsrqpo", Epoch: 41}}
	in.Stack = "abcdefghijkl"
	doc, _, err := amend.Rebuild(in)
	if err != nil || doc.Jobs[address(t, "job.a")] == nil || doc.Epoch != 42 {
		t.Errorf("with the stack named: %+v, %v, want job.a in epoch 42", doc, err)
	}
}

// Whatever goes on: after a rebuild nothing is deleted or restarted that runs.
func TestRebuildOfARunningWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired := drawFiles(t)
		w := newWorld(t, desired)
		faults(t, w)
		if len(amend.Marks(w.observe())) == 0 {
			return // nothing was there to be lost
		}
		given := &desired
		if rapid.IntRange(0, 3).Draw(t, "files lost") == 0 {
			given = nil
		}
		runs := w.running()
		starts := len(w.starts)
		w.ended = nil
		w.rebuild(given)
		w.mustLeave(runs, w.doc.Desired)
		if given != nil {
			w.mustLeave(runs, desired)
		}
		w.accept(desired)
		for range 30 { // some may wait for ever, for what is stopped now
			w.step()
		}
		w.twoOnAHost()
		for _, what := range w.ended {
			if slices.Contains(runs, strings.TrimPrefix(what, "slice ")) {
				t.Fatalf("ended %s, which ran", what)
			}
		}
		for _, start := range w.starts[starts:] {
			if slices.Contains(w.starts[:starts], start) {
				t.Fatalf("started again: %s", start)
			}
		}
	})
}

// faults lets some steps pass, in which slices are preempted and tasks fail.
func faults(t *rapid.T, w *world) {
	for range rapid.IntRange(0, 15).Draw(t, "steps") {
		w.step()
		names := slices.Sorted(maps.Keys(w.slices))
		if len(names) == 0 {
			continue
		}
		name := rapid.SampledFrom(names).Draw(t, "slice")
		switch rapid.IntRange(0, 6).Draw(t, "fault") {
		case 0:
			w.preempt(name)
		case 1:
			delete(w.slices, name)
		case 2:
			for n, h := range w.hosts[name] {
				if h.Task != nil && h.Task.State == schema.TaskRunning {
					failed := *h.Task
					failed.State = schema.TaskFailed
					w.hosts[name][n].Task = &failed
					break
				}
			}
		}
	}
}

// running are the slices of gangs that are whole and run as they should.
func (w *world) running() []string {
	var names []string
	for name, a := range w.assignments {
		if a.Run == nil {
			continue
		}
		whole := true
		for _, p := range a.Run.Peers {
			st := w.slices[p.Slice]
			whole = whole && st != nil && st.Phase == schema.SliceReady && w.assignments[p.Slice].Generation == a.Generation
			if hosts := w.hosts[p.Slice]; p.Host >= len(hosts) || hosts[p.Host].Task == nil || hosts[p.Host].Task.State != schema.TaskRunning {
				whole = false
			}
		}
		if whole {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// mustLeave fails if anything is to end on slices where it runs.
func (w *world) mustLeave(runs []string, desired schema.Desired) {
	w.t.Helper()
	for _, a := range w.diff(desired).Actions {
		if slices.Contains(runs, a.Slice.Name) {
			w.t.Fatalf("%s of %s, where all is well: %+v", a.Verb, a.Slice.Name, a.Assignment)
		}
	}
}
