package run_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/run"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// lead follows orders, all of which succeed, and returns them until one is None.
func lead(m *run.Machine, o run.Observation) []run.Order {
	var orders []run.Order
	for range 20 {
		order := m.Next(start, o)
		if order.Verb == run.None {
			break
		}
		orders = append(orders, order)
		m.Done(start, order)
	}
	return orders
}

func verbsOf(orders []run.Order) []run.Verb {
	var verbs []run.Verb
	for _, order := range orders {
		verbs = append(verbs, order.Verb)
	}
	return verbs
}

func wantVerbs(t *testing.T, got []run.Order, want ...run.Verb) {
	t.Helper()
	if diff := cmp.Diff(want, verbsOf(got)); diff != "" {
		t.Fatalf("orders (-want +got):\n%s", diff)
	}
}

// busy is what is seen while tasks are rolled out.
func busy() run.Observation {
	return run.Observation{Loader: rl.LoaderStatus{Leased: 1}, Settled: true, Health: rl.Healthy}
}

// done is what is seen when nothing is left to do.
func done() run.Observation {
	return run.Observation{
		Loader: rl.LoaderStatus{Drained: true, Finished: true}, PoolsEmpty: true, TrainBatchesEmpty: true, Quiescent: true, Settled: true,
		Health: rl.Healthy,
	}
}

func running(t *testing.T, cfg run.Config) *run.Machine {
	t.Helper()
	m := run.New(cfg, start)
	lead(m, busy())
	if got := m.State().Phase; got != run.Running {
		t.Fatalf("after the start the phase is %s", got)
	}
	return m
}

func TestN59_WeightsAreSyncedBeforeAnyRollout(t *testing.T) {
	m := run.New(run.Config{}, start)
	wantVerbs(t, lead(m, busy()), run.Initialize, run.PrepareFresh, run.SyncWeights, run.StartWorkers)
}

func TestN56_AutoPicksTheNumericMaximum(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
		step  int64
	}{
		{nil, "", 0},
		{[]string{"global_step_9", "global_step_10", "global_step_2"}, "global_step_10", 10},
		{[]string{"global_step_x", "global_step_", "global_step_-3", ".global_step_99.tmp-1", "step_7", "global_step_3"}, "global_step_3", 3},
		{[]string{"global_step_x"}, "", 0},
	} {
		m := run.New(run.Config{Resume: rl.ResumeAuto}, start)
		o := busy()
		o.Checkpoints = test.names
		order := lead(m, o)[1]
		verb := run.Load
		if test.want == "" {
			verb = run.PrepareFresh
		}
		if order.Verb != verb || order.Path != test.want || order.Step != test.step {
			t.Errorf("%v: got %+v, want %s of %q at step %d", test.names, order, verb, test.want, test.step)
		}
	}
}

func TestN57_AMissingCheckpointEndsTheRun(t *testing.T) {
	m := run.New(run.Config{Resume: rl.ResumeFromPath, ResumePath: "/c/global_step_7"}, start)
	o := busy()
	o.Missing = true
	lead(m, o)
	if s := m.State(); !s.Failed || s.Reason == "" {
		t.Errorf("got %+v, want a failed run", s)
	}
	m = run.New(run.Config{Resume: rl.ResumeFromPath, ResumePath: "/c/global_step_7/"}, start)
	if order := lead(m, busy())[1]; order.Verb != run.Load || order.Step != 7 {
		t.Errorf("got %+v, want the load of step 7", order)
	}
}

func TestN72_ValidationBeforeTraining(t *testing.T) {
	m := run.New(run.Config{ValidateBeforeTrain: true}, start)
	o := busy()
	wantVerbs(t, lead(m, o), run.Initialize, run.PrepareFresh, run.SyncWeights, run.StartValidation)
	o.Complete = true
	wantVerbs(t, lead(m, o), run.EndValidation, run.StartWorkers)
}

func TestN67_AValidationThatIsDueIsLedToItsEnd(t *testing.T) {
	m := running(t, run.Config{})
	o := busy()
	o.Waiting = []rl.ModelTag{"default"}
	orders := lead(m, o)
	wantVerbs(t, orders, run.StartValidation)
	if orders[0].Tag != "default" {
		t.Errorf("validates model %q", orders[0].Tag)
	}
	o.Complete, o.Waiting = true, nil
	wantVerbs(t, lead(m, o), run.EndValidation)
	if got := m.State().Phase; got != run.Running {
		t.Errorf("then the phase is %s", got)
	}
}

func TestN54_N82_Finish(t *testing.T) {
	m := running(t, run.Config{TotalSteps: 5})
	o := busy()
	o.Step = 4
	wantVerbs(t, lead(m, o))
	o.Step, o.Trained = 5, 4 // the last update is being saved
	wantVerbs(t, lead(m, o))
	o.Trained, o.Quiescent = 5, true
	wantVerbs(t, lead(m, o), run.StopWorkers, run.Conclude)
	if s := m.State(); s.Failed || s.Phase != run.Ended {
		t.Errorf("got %+v, want the end without a failure", s)
	}
	for name, pending := range map[string]func(*run.Observation){
		"a lease":               func(o *run.Observation) { o.Loader.Leased = 1 },
		"data":                  func(o *run.Observation) { o.Loader.Drained, o.Loader.Finished = false, false },
		"trajectories":          func(o *run.Observation) { o.PoolsEmpty = false },
		"a batch to be trained": func(o *run.Observation) { o.TrainBatchesEmpty = false },
		"an activity":           func(o *run.Observation) { o.Quiescent = false },
		"a copy of weights":     func(o *run.Observation) { o.Settled = false },
	} {
		m := running(t, run.Config{})
		o := done()
		pending(&o)
		for range 5 {
			wantVerbs(t, lead(m, o))
		}
		if order := m.Next(start, done()); order.Verb != run.None {
			t.Errorf("%s: one observation of a standstill ends the run", name)
		}
		wantVerbs(t, lead(m, done()), run.StopWorkers, run.Conclude)
	}
}

// Where every rollout of a batch has failed no batch leads to the next one.
func TestAStandstillIsReleased(t *testing.T) {
	m := running(t, run.Config{})
	o := done()
	o.Loader.Finished, o.Loader.Locked = false, true
	if order := m.Next(start, o); order.Verb != run.None {
		t.Fatalf("got %s at the first observation", order.Verb)
	}
	if order := m.Next(start, o); order.Verb != run.Release {
		t.Fatalf("got %q, want a release", order.Verb)
	}
}

func TestN81_PoliciesAreDistinct(t *testing.T) {
	type seen struct {
		health   rl.Health
		critical int
	}
	ends := map[rl.ErrorPolicy]map[seen]bool{
		rl.StopOnError:    {{rl.Healthy, 0}: false, {rl.HealthWarning, 0}: false, {rl.HealthError, 0}: true, {rl.HealthError, 1}: true, {"green", 0}: true},
		rl.StopOnCritical: {{rl.Healthy, 0}: false, {rl.HealthWarning, 0}: false, {rl.HealthError, 0}: false, {rl.HealthError, 1}: true, {"green", 0}: true},
		rl.ContinueOnAny:  {{rl.Healthy, 0}: false, {rl.HealthWarning, 0}: false, {rl.HealthError, 0}: false, {rl.HealthError, 1}: false, {"green", 0}: false},
	}
	for policy, cases := range ends {
		for given, want := range cases {
			m := running(t, run.Config{Policy: policy})
			o := busy()
			o.Health, o.Critical = given.health, given.critical
			m.Next(start, o)
			if got := m.State().Failed; got != want {
				t.Errorf("%s, %+v: the run ends: %v, want %v", policy, given, got, want)
			}
		}
	}
}

func TestN80_AModuleThatStaysGoneEndsTheRun(t *testing.T) {
	m := running(t, run.Config{Patience: time.Minute})
	o := busy()
	o.Gone = map[string]time.Duration{"rollout_worker_3": 59 * time.Second}
	wantVerbs(t, lead(m, o))
	o.Gone["rollout_worker_3"] = time.Minute
	m.Next(start, o)
	if s := m.State(); !s.Failed || s.Reason != "rollout_worker_3 has not answered for 1m0s" {
		t.Errorf("got %+v", s)
	}
}

// Others roll out what was the tasks of a worker that is gone, such as one that waits for another host. Without any the run ends.
func TestN80_TheRunGoesOnWhileARolloutWorkerIsLeft(t *testing.T) {
	m := running(t, run.Config{Patience: time.Minute, RolloutWorkers: 2})
	o := busy()
	o.Gone = map[string]time.Duration{"rollout_worker_0": time.Hour, "rollout_worker_1": 59 * time.Second}
	wantVerbs(t, lead(m, o))
	o.Gone["rollout_worker_1"] = time.Minute
	m.Next(start, o)
	if s := m.State(); !s.Failed || s.Reason != "rollout_worker_1 has not answered for 1m0s" {
		t.Errorf("with none left: got %+v", s)
	}
	m = running(t, run.Config{Patience: time.Minute, RolloutWorkers: 2})
	o.Gone = map[string]time.Duration{"trajectory_pool": time.Minute}
	if m.Next(start, o); !m.State().Failed {
		t.Error("the run goes on without its pool")
	}
}

func TestN83_StopWaitsThirtySecondsAndNamesWhatIsLeft(t *testing.T) {
	m := running(t, run.Config{})
	m.Stop(start, "asked to")
	o := busy()
	order := m.Next(start, o)
	if order.Verb != run.StopWorkers {
		t.Fatalf("got %q, want stop_workers", order.Verb)
	}
	m.Done(start, order)
	if order := m.Next(start.Add(29*time.Second), o); order.Verb != run.None {
		t.Fatalf("got %q after 29 s, want to wait", order.Verb)
	}
	order = m.Next(start.Add(30*time.Second), o)
	if order.Verb != run.Conclude {
		t.Fatalf("got %q after 30 s, want the end", order.Verb)
	}
	m.Left("train_worker_0: step 7, for 31s")
	m.Done(start, order)
	if s := m.State(); s.Phase != run.Ended || s.Failed || s.Leftover == "" || s.Reason != "asked to" {
		t.Errorf("got %+v", s)
	}
}

func TestRestartsOfModules(t *testing.T) {
	for _, test := range []struct {
		module   string
		recovery rl.Recovery
		want     []run.Verb
	}{
		{"rollout_worker_3", rl.RecoverJournal, []run.Verb{run.StartWorkers}},
		{"trajectory_pool", rl.RecoverJournal, []run.Verb{run.StartWorkers}},
		{"rollout_worker_3", rl.RecoverCheckpoint, []run.Verb{run.StartWorkers}},
		{"trajectory_pool_1", rl.RecoverCheckpoint, []run.Verb{run.Rewind, run.Initialize, run.Load, run.SyncWeights, run.StartWorkers}},
		{"data_loader", rl.RecoverCheckpoint, []run.Verb{run.Rewind, run.Initialize, run.Load, run.SyncWeights, run.StartWorkers}},
	} {
		m := running(t, run.Config{Recovery: test.recovery})
		o := busy()
		o.Restarted, o.Checkpoints = []string{test.module}, []string{"global_step_4"}
		var got []run.Order
		for range 10 {
			order := m.Next(start, o)
			if order.Verb == run.None {
				break
			}
			got = append(got, order)
			m.Done(start, order)
			if order.Verb == run.StartWorkers {
				o.Restarted = nil
			}
		}
		if diff := cmp.Diff(test.want, verbsOf(got)); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", test.module, test.recovery, diff)
		}
		if rewound := len(test.want) > 1; rewound != (m.State().Epoch == 1) || rewound && got[2].Path != "global_step_4" {
			t.Errorf("%s, %s: epoch %d, orders %+v", test.module, test.recovery, m.State().Epoch, got)
		}
	}
}

// A controller that is restarted at any order gives the same one again, and the run goes on.
func TestARestoredMachineGoesOn(t *testing.T) {
	o := busy()
	o.Complete = true
	for crash := range 6 {
		m := run.New(run.Config{ValidateBeforeTrain: true}, start)
		var before run.Order
		for range crash {
			before = m.Next(start, o)
			m.Done(start, before)
		}
		due := m.Next(start, o)
		text, err := json.Marshal(m.State())
		if err != nil {
			t.Fatal(err)
		}
		var state run.State
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatal(err)
		}
		next := run.New(run.Config{ValidateBeforeTrain: true}, start)
		next.Restore(state)
		if diff := cmp.Diff(due, next.Next(start, o)); diff != "" {
			t.Errorf("after %d orders (-before +after the restart):\n%s", crash, diff)
		}
		lead(next, o)
		if got := next.State().Phase; got != run.Running {
			t.Errorf("after %d orders the phase ends as %s", crash, got)
		}
	}
}

func TestAStartThatFailsEndsTheRun(t *testing.T) {
	m := run.New(run.Config{Patience: time.Minute}, start)
	order := m.Next(start, busy())
	first := start.Add(time.Hour) // the order itself may take long
	for _, at := range []time.Time{first, first.Add(59 * time.Second)} {
		m.Failed(at, order, "train_worker_0 is not there", false)
		if m.State().Failed {
			t.Fatal("the run ends before its patience does")
		}
	}
	m.Failed(first.Add(time.Minute), order, "train_worker_0 is not there", false)
	if s := m.State(); !s.Failed || s.Reason != "initialize: train_worker_0 is not there" {
		t.Errorf("got %+v", s)
	}
	m = run.New(run.Config{}, start)
	m.Failed(start, m.Next(start, busy()), "no such model", true)
	if !m.State().Failed {
		t.Error("a final failure does not end the run")
	}
}

// What failed once, and then not, does not count when something fails much later.
func TestFailuresCountWhileTheyGoOn(t *testing.T) {
	m := running(t, run.Config{Patience: time.Minute})
	o := busy()
	o.Restarted = []string{"rollout_worker_1"}
	order := m.Next(start, o)
	m.Failed(start, order, "it has died again", false)
	o.Restarted = nil
	wantVerbs(t, lead(m, o)) // it is away
	o.Restarted = []string{"rollout_worker_1"}
	m.Failed(start.Add(time.Hour), m.Next(start.Add(time.Hour), o), "it has died again", false)
	if m.State().Failed {
		t.Error("two failures in an hour end the run")
	}
	m.Failed(start.Add(time.Hour+time.Minute), order, "it has died again", false)
	if !m.State().Failed {
		t.Error("a module that cannot be started for a minute does not end the run")
	}
}

func TestARunThatCannotBeObserved(t *testing.T) {
	unseen := busy()
	unseen.Problem = "data_loader.status: unavailable"
	for _, test := range []struct {
		policy rl.ErrorPolicy
		phase  run.Phase
		ends   bool
	}{{rl.StopOnError, run.Running, true}, {rl.StopOnCritical, run.Validating, true}, {rl.ContinueOnAny, run.Running, false}, {rl.ContinueOnAny, run.Loading, true}} {
		m := running(t, run.Config{Patience: time.Minute, Policy: test.policy})
		m.Restore(run.State{Phase: test.phase, Since: start.Add(-time.Hour)})
		m.Next(start, unseen)
		m.Next(start.Add(59*time.Second), unseen)
		if m.State().Failed {
			t.Fatalf("%s, %s: it ends before its patience does", test.policy, test.phase)
		}
		m.Next(start.Add(time.Minute), unseen)
		if s := m.State(); s.Failed != test.ends || test.ends && s.Reason != "observe the run: data_loader.status: unavailable" {
			t.Errorf("%s, %s: failed %v (%q), want %v", test.policy, test.phase, s.Failed, s.Reason, test.ends)
		}
	}
	m := running(t, run.Config{Patience: time.Minute})
	m.Next(start, unseen)
	m.Next(start.Add(time.Second), busy())
	m.Next(start.Add(time.Minute), unseen)
	if m.State().Failed {
		t.Error("an observation between two that are not whole does not count")
	}
	unseen.Gone = map[string]time.Duration{"data_loader": time.Minute}
	m.Next(start.Add(time.Minute), unseen)
	if s := m.State(); !s.Failed || s.Reason != "data_loader has not answered for 1m0s" {
		t.Errorf("with a module that is gone: %+v", s)
	}
}

// The validation of the last weights comes before the end: between the tracker's step and the report of the update it is
// not seen yet.
func TestN67_N54_AValidationThatTheLastUpdateMakesDueIsLedFirst(t *testing.T) {
	m := running(t, run.Config{TotalSteps: 5, ValidateFreq: 5})
	o := busy()
	o.Step, o.Trained, o.Quiescent = 5, 4, true
	wantVerbs(t, lead(m, o))
	o.Trained, o.Settled = 5, false // its weights are being copied
	wantVerbs(t, lead(m, o))
	o.Waiting = []rl.ModelTag{"default"}
	wantVerbs(t, lead(m, o), run.StartValidation)
	o.Complete, o.Waiting, o.Settled = true, nil, true
	wantVerbs(t, lead(m, o), run.EndValidation, run.StopWorkers, run.Conclude)

	m = running(t, run.Config{TotalSteps: 5, ValidateFreq: 5, Patience: time.Minute})
	o = busy()
	o.Step, o.Quiescent = 5, true // by a trainer that reports no updates
	wantVerbs(t, lead(m, o))
	if order := m.Next(start.Add(time.Minute), o); order.Verb != run.StopWorkers {
		t.Errorf("got %q after the patience, want stop_workers", order.Verb)
	}
}

// A run that began with a given checkpoint goes back to that one until it has saved its own.
func TestARewindBeforeTheFirstCheckpointGoesBackToResumePath(t *testing.T) {
	m := running(t, run.Config{Resume: rl.ResumeFromPath, ResumePath: "/c/global_step_7", Recovery: rl.RecoverCheckpoint})
	o := busy()
	o.Restarted = []string{"data_loader"}
	m.Done(start, m.Next(start, o))
	o.Restarted = nil
	m.Done(start, m.Next(start, o))
	if order := m.Next(start, o); order.Verb != run.Load || order.Path != "/c/global_step_7" || order.Step != 7 || order.Epoch != 1 {
		t.Errorf("got %+v, want the load of step 7 in epoch 1", order)
	}
}
