package incremental

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// launchedJob is a job that a program launches in the namespace default.
func launchedJob(name string, options ...jobOption) schema.Job {
	j := newJob(name, options...)
	j.Addr = schema.LaunchedAddress(schema.KindJob, "default", j.Addr.Group, name)
	return j
}

// launch has a job launch others; "" for a user.
func (w *world) launch(parent string, jobs ...schema.Job) error {
	w.t.Helper()
	return w.launchAs(state.Launch{Parent: parent, ParentAttempt: w.attemptOf(parent)}, jobs...)
}

func (w *world) attemptOf(id string) int {
	for _, j := range w.doc.Jobs {
		if j.ID == id {
			return j.Attempt
		}
	}
	return 0
}

func (w *world) launchAs(l state.Launch, jobs ...schema.Job) error {
	var all []launch.Launching
	for i := range jobs {
		one := l
		one.Name = jobs[i].Addr.LaunchedName()
		one.Request = one.Name + w.now.String()
		all = append(all, launch.Launching{Job: &jobs[i], Launch: one})
	}
	next, err := launch.Launched(w.doc, all, w.now)
	if err == nil {
		w.doc = next
		w.save()
	}
	return err
}

func (w *world) mustLaunch(parent string, jobs ...schema.Job) {
	w.t.Helper()
	if err := w.launch(parent, jobs...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) status(addr schema.Address) schema.JobStatus { return w.job(addr).Status }

func TestLaunchedJobsRunLikeDeclaredOnes(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	boss := w.job(jobAddr("boss")).ID
	child := launchedJob("child-1.5")
	w.mustLaunch(boss, child)
	w.settle(time.Minute)
	w.wantJob(child.Addr, schema.JobRunning, 1, 0, 0)
	if p := reconcile.Diff(&w.doc.Desired, w.doc, w.observe(), w.now); !p.Empty() {
		t.Errorf("a plan of the same files is not empty: %v %v", p.Changes, p.Actions)
	}
	other := configuration(newJob("boss"), newJob("more"))
	for _, c := range reconcile.Diff(&other, w.doc, w.observe(), w.now).Changes {
		if c.Addr == child.Addr && c.Verb != plan.VerbNone {
			t.Errorf("the plan of other files has %s for what was launched", c.Verb)
		}
	}
	w.accept(other)
	w.settle(time.Minute)
	w.wantJob(child.Addr, schema.JobRunning, 1, 0, 0)
}

func TestChildrenGoWithTheAttemptThatLaunchedThem(t *testing.T) {
	w := newWorld(t)
	w.exits(jobAddr("boss"), program{runs: 30 * time.Second, code: 1}, program{})
	w.accept(configuration(newJob("boss", failures(1))))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("boss")] != nil && w.job(jobAddr("boss")).Ready })
	child, grandchild, free := launchedJob("child"), launchedJob("grandchild"), launchedJob("free")
	boss := w.job(jobAddr("boss")).ID
	w.mustLaunch(boss, child)
	w.until(time.Minute, "the child runs", func(*plan.Plan) bool { return w.job(child.Addr).Ready })
	w.mustLaunch(w.job(child.Addr).ID, grandchild)
	if err := w.launchAs(state.Launch{Parent: boss, ParentAttempt: 1, Detached: true}, free); err != nil {
		t.Fatal(err)
	}
	w.until(5*time.Minute, "the boss runs again", func(*plan.Plan) bool { j := w.job(jobAddr("boss")); return j.Attempt == 2 && j.Ready })
	w.settle(time.Minute)
	for addr, want := range map[schema.Address]schema.JobStatus{child.Addr: schema.JobStopped, grandchild.Addr: schema.JobStopped, free.Addr: schema.JobRunning} {
		if got := w.status(addr); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	w.mustLaunch(boss, child) // the second attempt launches it again
	w.settle(time.Minute)
	w.wantJob(child.Addr, schema.JobRunning, 1, 0, 0)
	if len(w.doc.Past) != 1 {
		t.Errorf("the past has %d jobs, want the first child", len(w.doc.Past))
	}
}

// A job cancelled takes its whole subtree along, and nothing of it is wanted afterwards.
func TestSemantics07CancellingEndsTheSubtree(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	child, grandchild, waiting := launchedJob("child"), launchedJob("grandchild"), launchedJob("waiting", from("nowhere"))
	w.mustLaunch(w.job(jobAddr("boss")).ID, child)
	w.until(time.Minute, "the child runs", func(*plan.Plan) bool { return w.job(child.Addr).Ready })
	w.mustLaunch(w.job(child.Addr).ID, grandchild, waiting)
	w.until(time.Minute, "the grandchild runs", func(*plan.Plan) bool { return w.job(grandchild.Addr).Ready })
	w.doc = launch.Terminated(w.doc, child.Addr, "user ann")
	w.settle(time.Minute)
	for _, addr := range []schema.Address{child.Addr, grandchild.Addr, waiting.Addr} {
		if got := w.job(addr); got.Status != schema.JobStopped || len(got.Slices) > 0 {
			t.Errorf("%s is %s on %v, want it stopped without slices", addr, got.Status, got.Slices)
		}
	}
	w.wantJob(jobAddr("boss"), schema.JobRunning, 1, 0, 0)
	w.pass(2 * time.Minute) // what a launched job gave back idles for a while
	if got := w.own(); len(got) != 1 {
		t.Errorf("slices %v are left, want the boss's only", got)
	}
	if again := launch.Terminated(w.doc, child.Addr, "user ann"); again != w.doc {
		t.Error("terminating what has ended changed the state")
	}
}

func TestLaunchIsWholeOrNothing(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	boss := w.job(jobAddr("boss")).ID
	w.mustLaunch(boss, launchedJob("b"))
	before := w.doc
	err := w.launch(boss, launchedJob("a"), launchedJob("b"), launchedJob("c"))
	taken, ok := errors.AsType[*launch.NameTakenError](err)
	if !ok || taken.Addr != launchedJob("b").Addr || taken.Leaving {
		t.Errorf("got %v, want that b is taken", err)
	}
	if w.doc != before {
		t.Error("part of it was launched")
	}
}

func TestLaunchedJobsAreForgotten(t *testing.T) {
	w := newWorld(t)
	child := launchedJob("child", inGroup("pool"))
	child.Addr = schema.LaunchedAddress(schema.KindJob, "default", "pool", "child")
	w.exits(child.Addr, program{runs: time.Second})
	w.accept(configuration(newJob("boss")))
	w.settle(time.Minute)
	group := schema.JobGroup{Addr: child.Addr.GroupAddress(), Namespace: "default"}
	next, err := launch.Launched(w.doc, []launch.Launching{{Group: &group}, {Job: &child}}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.doc = next
	w.settle(time.Minute)
	w.wantJob(child.Addr, schema.JobSucceeded, 1, 0, 0)
	w.run(time.Second)
	w.now = w.now.Add(launch.Retention - time.Minute)
	w.run(time.Second)
	w.wantJob(child.Addr, schema.JobSucceeded, 1, 0, 0)
	w.now = w.now.Add(2 * time.Minute)
	w.run(time.Second)
	if len(w.doc.Jobs) != 1 || len(w.doc.Resources) != 0 {
		t.Errorf("jobs %v and resources %v are remembered, want the boss only", w.doc.Jobs, w.doc.Resources)
	}
}

func TestDestroyEndsWhatWasLaunched(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	child := launchedJob("child")
	w.mustLaunch("", child)
	w.settle(time.Minute)
	w.doc = launch.Unlaunched(w.doc, func(schema.Address) bool { return true })
	var nothing schema.Desired
	p := reconcile.Diff(&nothing, w.doc, w.observe(), w.now)
	if got := p.Counts()[plan.VerbDelete]; got != 2 {
		t.Errorf("the plan deletes %d addresses, want both jobs", got)
	}
	w.accept(nothing)
	w.settle(time.Minute)
	if got := w.own(); len(got)+len(w.doc.Jobs) > 0 {
		t.Errorf("slices %v and jobs %v are left", got, w.doc.Jobs)
	}
}

func TestLaunchedReservations(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	pool := newPool("p", "", 2)
	pool.Addr = schema.LaunchedAddress(schema.KindReservation, "default", "", "p")
	next, err := launch.Launched(w.doc, []launch.Launching{{Reservation: &pool, Launch: state.Launch{Parent: w.job(jobAddr("boss")).ID, ParentAttempt: 1}}}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.doc = next
	w.settle(time.Minute)
	if got := w.own(); len(got) != 3 {
		t.Fatalf("slices %v, want the boss's and two of the reservation", got)
	}
	released := launch.Released(w.doc, pool.Addr, w.now)
	if launch.Released(released, pool.Addr, w.now) != released {
		t.Error("releasing twice changed the state")
	}
	w.doc = launch.Terminated(w.doc, jobAddr("boss"), "user ann") // takes its reservation along
	w.settle(time.Minute)
	if got := w.own(); len(got) != 0 {
		t.Errorf("slices %v are left", got)
	}
	if l := w.doc.Resources[pool.Addr].Launch; l == nil || l.ReleasedAt.IsZero() {
		t.Errorf("the reservation is not remembered as released: %+v", l)
	}
	if _, err := launch.Launched(w.doc, []launch.Launching{{Reservation: &pool}}, w.now); err != nil {
		t.Errorf("its name cannot be taken again: %v", err)
	}
}

// A job that waits for a reservation which is given up runs on slices of its own.
func TestReleasedReservationSetsItsJobsFree(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	pool := newPool("p", "", 1)
	pool.Addr = schema.LaunchedAddress(schema.KindReservation, "default", "", "p")
	next, err := launch.Launched(w.doc, []launch.Launching{{Reservation: &pool}}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.doc = next
	first, second := launchedJob("first", from("default/p")), launchedJob("second", from("default/p"))
	w.mustLaunch("", first)
	w.settle(time.Minute)
	w.mustLaunch("", second)
	w.run(5 * time.Second)
	w.wantJob(second.Addr, schema.JobPending, 0, 0, 0)
	w.doc = launch.Released(w.doc, pool.Addr, w.now)
	w.until(time.Minute, "the second runs", func(*plan.Plan) bool { return w.job(second.Addr).Ready })
	w.wantJob(first.Addr, schema.JobRunning, 1, 0, 0)
}

func TestLaunchSurvivesARestart(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	child := launchedJob("child")
	w.mustLaunch(w.job(jobAddr("boss")).ID, child)
	id := w.job(child.Addr).ID
	w.crash()
	w.settle(time.Minute)
	w.crash()
	w.run(10 * time.Second)
	w.wantJob(child.Addr, schema.JobRunning, 1, 0, 0)
	if got := w.job(child.Addr).ID; got != id {
		t.Errorf("its id is %s, want %s", got, id)
	}
}

// A group that takes the name of one that has ended has only its own jobs.
func TestLaunchedGroupIsNotHeldByTheOneBefore(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	member := func(name string) schema.Job {
		j := launchedJob(name, inGroup("pool"))
		j.Addr = schema.LaunchedAddress(schema.KindJob, "default", "pool", name)
		j.SchedulingTimeout = schema.Duration(time.Minute)
		return j
	}
	late, next := member("late"), member("next")
	late.Resources.Reservation = "nowhere"
	group := schema.JobGroup{Addr: late.Addr.GroupAddress(), Namespace: "default"}
	launch := func(job *schema.Job) {
		t.Helper()
		doc, err := launch.Launched(w.doc, []launch.Launching{{Group: &group}, {Job: job, Launch: state.Launch{Request: job.Addr.Name}}}, w.now)
		if err != nil {
			t.Fatal(err)
		}
		w.doc = doc
	}
	launch(&late)
	w.until(5*time.Minute, "it is given up", func(*plan.Plan) bool { return w.job(late.Addr).Status == schema.JobFailed })
	id := w.job(late.Addr).ID
	launch(&next)
	w.settle(time.Minute)
	if j := w.job(next.Addr); !j.Ready {
		t.Errorf("%s is %s (%s), want it running: what failed before is not of its group", next.Addr, j.Status, j.Reason)
	}
	if w.doc.Past[id] == nil || w.doc.Jobs[late.Addr] != nil {
		t.Errorf("the member of the group before is not past: jobs %v", w.doc.Jobs)
	}
}

// A client that launches job after job does not fill the state: the newest are remembered.
func TestNotAllThatEndedIsRemembered(t *testing.T) {
	const more = 5
	now := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	doc := &state.Document{Lineage: "abcdefghijklmnopqrstuvwxyz", Jobs: map[schema.Address]*state.Job{}, Former: state.Former{Past: map[string]*state.Job{}}}
	for i := range launch.MaxRemembered + more {
		spec := launchedJob("j" + strconv.Itoa(i))
		ended := &state.Job{
			ID: "past-" + strconv.Itoa(i), Spec: &spec, Launch: &state.Launch{}, Status: schema.JobSucceeded,
			EndedAt: now.Add(time.Duration(i-launch.MaxRemembered-more) * time.Second),
		}
		doc.Jobs[spec.Addr], doc.Past[ended.ID] = ended, ended
	}
	running := launchedJob("running")
	doc.Jobs[running.Addr] = &state.Job{ID: "running", Spec: &running, Launch: &state.Launch{}, Status: schema.JobPending, AdmittedAt: now.Add(-48 * time.Hour)}
	wanted := launch.Wanted(&doc.Desired, doc, now)
	if got := len(wanted.Jobs); got != launch.MaxRemembered+1 {
		t.Errorf("%d jobs are wanted, want the %d that ended last and the one that waits", got, launch.MaxRemembered)
	}
	next := reconcile.Diff(&doc.Desired, doc, &plan.Observed{}, now).Next
	if got := len(next.Past); got != launch.MaxRemembered {
		t.Errorf("%d past jobs are remembered, want %d", got, launch.MaxRemembered)
	}
	for i := range more {
		addr := launchedJob("j" + strconv.Itoa(i)).Addr
		if next.Jobs[addr] != nil || next.Past["past-"+strconv.Itoa(i)] != nil {
			t.Errorf("%s, one of the first that ended, is remembered", addr)
		}
	}
	if again := launch.Wanted(&next.Desired, next, now); len(again.Jobs) != launch.MaxRemembered+1 {
		t.Errorf("then %d jobs are wanted, want as many as before", len(again.Jobs))
	}
}

// While a job is being stopped, its reason says who asked for that.
func TestAJobThatIsBeingStoppedSaysByWhom(t *testing.T) {
	w := up(t, configuration(newJob("boss")))
	child := launchedJob("child", hosting(`["counter"]`))
	w.mustLaunch("", child)
	w.run(20 * time.Second)
	w.doc = launch.Terminated(w.doc, child.Addr, "the end of client one of ann, which created it")
	w.save()
	w.step(time.Millisecond)
	const by = "stopped by the end of client one of ann, which created it"
	if got, want := w.doc.Jobs[child.Addr].Reason, "attempt 1 is being stopped: "+by; got != want {
		t.Errorf("while it is being stopped: %q, want %q", got, want)
	}
	w.settle(time.Minute)
	if got := w.doc.Jobs[child.Addr]; got.Status != schema.JobStopped || got.Reason != by || got.Last().Reason != by {
		t.Errorf("afterwards: %s, %q, attempt %q; want %q", got.Status, got.Reason, got.Last().Reason, by)
	}
}
