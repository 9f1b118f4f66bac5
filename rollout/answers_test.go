package rollout

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// idleExecutor is a controller that does nothing between two observations.
type idleExecutor struct {
	Stepper

	doc  *state.Document
	last *plan.Plan
}

func (c idleExecutor) Document() *state.Document { return c.doc }
func (c idleExecutor) Last() *plan.Plan          { return c.last }
func (c idleExecutor) Idle() bool                { return true }

// TestAnApplyDoesNotAnswerForWhatProgramsLaunched, unless it names it: neither
// does it wait for it, nor fail with it.
func TestAnApplyDoesNotAnswerForWhatProgramsLaunched(t *testing.T) {
	declared := schema.Address{Kind: schema.KindJob, Name: "train"}
	waits := schema.LaunchedAddress(schema.KindJob, "lab", "", "waits")
	failed := schema.LaunchedAddress(schema.KindJob, "lab", "", "failed")
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{
		declared: {Status: schema.JobRunning, Ready: true, Spec: &schema.Job{Addr: declared}},
		waits:    {Status: schema.JobPending, Spec: &schema.Job{Addr: waits}},
		failed:   {Status: schema.JobFailed, Reason: "exit status 3", Spec: &schema.Job{Addr: failed}},
	}}
	last := &plan.Plan{
		Pending: []plan.Pending{{Addr: waits, Reasons: []string{"there is no room"}}},
		Actions: []plan.Action{{Verb: plan.CreateSlice, Addr: waits}},
	}
	for name, test := range map[string]struct {
		change     proposal.Change
		destroying bool
		settled    bool
		fails      bool
	}{
		"an apply":                   {settled: true},
		"of another target":          {change: proposal.Change{Targets: []schema.Address{declared}}, settled: true},
		"with what waits as target":  {change: proposal.Change{Targets: []schema.Address{waits}}},
		"that replaces what failed":  {change: proposal.Change{Replace: []schema.Address{failed}}, settled: true, fails: true},
		"a destroy, of all there is": {destroying: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			change := &Rollout{Options: &Options{}, Change: &test.change, Destroying: test.destroying}
			r := &run{extent: extent{Rollout: change, scope: apply.Scope{All: true}}, stepper: idleExecutor{doc: doc, last: last}}
			r.handedOver.Store(true)
			if got := r.settled(); got != test.settled {
				t.Errorf("settled: got %v, want %v", got, test.settled)
			}
			err := r.failedJobs(doc, r.scope.Names)
			if got := err != nil && strings.Contains(err.Error(), failed.String()); got != test.fails {
				t.Errorf("fails with %v, want it to name %s: %v", err, failed, test.fails)
			}
			if got, want := len(r.waiting()) == 0, test.settled; got != want {
				t.Errorf("still waits: got %v, want nothing: %v", r.waiting(), want)
			}
		})
	}
}

// TestWhatProgramsLaunchedHidesNoFailure: an apply that finds nothing of its own to do
// names a job that failed earlier, whatever what programs launched does meanwhile.
func TestWhatProgramsLaunchedHidesNoFailure(t *testing.T) {
	failed := schema.Address{Kind: schema.KindJob, Name: "train"}
	other := schema.Address{Kind: schema.KindJob, Name: "other"}
	launched := schema.LaunchedAddress(schema.KindJob, "lab", "", "sweep")
	of := func(addr schema.Address) *plan.Plan {
		return &plan.Plan{
			Changes: []plan.Change{{Addr: failed, Verb: plan.VerbNone}, {Addr: addr, Verb: plan.VerbUpdate}},
			Actions: []plan.Action{{Verb: plan.CreateSlice, Addr: addr}},
			Pending: []plan.Pending{{Addr: addr}},
			Drift:   []plan.Drift{{Addr: addr}},
		}
	}
	for name, test := range map[string]struct {
		plan *plan.Plan
		want bool
	}{
		"nothing":                {&plan.Plan{}, true},
		"something launched":     {of(launched), true},
		"something else to do":   {of(other), false},
		"something else to wait": {&plan.Plan{Pending: []plan.Pending{{Addr: other}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &extent{
				Rollout: &Rollout{Options: &Options{}, Change: &proposal.Change{}}, scope: apply.Scope{Addrs: map[schema.Address]bool{other: true}},
			}
			if got := r.concerns(test.plan)(failed); got != test.want {
				t.Errorf("names what failed earlier: got %v, want %v", got, test.want)
			}
		})
	}
}
