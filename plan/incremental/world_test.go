package incremental

import (
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// world is a small one: a provider with slices and hosts, agents that obey
// assignments, a mailbox, a controller that steps and saves, and a clock that
// only moves when told to. Its oracle (oracle_test.go) watches every step.
type world struct {
	lists map[string][]plan.Host // of the last look
	t     tester
	now   time.Time
	epoch uint64

	doc     *state.Document // what the controller remembers
	planner *Planner        // with which it plans
	turns   int             // about how many waiting jobs that decides at once; 0: as in the product
	saved   *state.Document // what it would find after a crash
	written *state.Document // of which that is a copy
	savedAt time.Time
	last    *plan.Plan
	silence map[hostKey]observed // the observer's memory, lost in a crash

	slices      map[string]*simSlice
	assignments map[string]plan.Assigned
	damaged     map[string]state.Generation // objects of assignments that cannot be read
	reports     map[hostKey]state.HostReport
	generation  state.Generation // of the last object written
	reported    uint64           // Seq of the last report of any host
	program     func(run *state.Run, task int) program

	// The faults.
	createTakes, bootTakes, deleteTakes, stopTakes time.Duration
	capacity                                       int                                     // slices that can be had, 0: any number
	quota                                          int                                     // slices that are allowed, 0: any number
	unreachable                                    bool                                    // the provider cannot be asked
	shut                                           map[string]error                        // by zone: why nothing can be created there
	refuses                                        func(schema.SliceSpec) error            // what is not created, nil: none
	unlisted                                       map[string]string                       // by zone: why it is not listed
	misreads                                       func(schema.Inventory) schema.Inventory // what a list makes of the truth, nil: nothing
	unreadable                                     bool                                    // no slice can be read directly
	unread                                         bool                                    // no report was read yet
	doubted                                        map[string]plan.Confirmation            // of the last look
	loses                                          func(plan.Action) bool
	wayward                                        bool // there are too many faults to expect progress

	oracle oracle
	log    func(format string, args ...any)
}

// tester is what a testing.T and a rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// program is what a task does: it runs for a time (0: for ever), then exits.
type program struct {
	runs   time.Duration
	code   int
	state  schema.TaskState // "" follows from code
	health state.HealthState
}

type hostKey struct {
	slice string
	host  int
}

type observed struct {
	seq uint64
	at  time.Time
}

type simSlice struct {
	spec      schema.SliceSpec
	phase     schema.SlicePhase
	waiting   bool             // in the cloud's queue
	cause     schema.ErrorKind // of its death
	reason    string
	createdAt time.Time
	changesAt time.Time // when creating or deleting is over
	hosts     []*simHost
}

// simHost is a host; what is on its disk outlives its agent.
type simHost struct {
	bootsAt  time.Time
	agent    bool // is up
	muted    bool // its reports get lost
	boot     int
	seen     mark
	done     int64
	run      *state.Run // as last assigned
	task     *state.TaskReport
	taskRun  *state.Run // of the task
	does     program
	live     bool // a process of the task is there
	endsAt   time.Time
	stopsAt  time.Time
	notified bool // preempted
}

type mark struct {
	epoch      uint64
	generation int64
}

const testLineage = "abcdefghijklmnopqrstuvwxyz"

func newWorld(t tester) *world {
	w := &world{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), epoch: 1,
		doc:         &state.Document{FormatVersion: state.FormatVersion, Lineage: testLineage},
		silence:     map[hostKey]observed{},
		lists:       map[string][]plan.Host{},
		slices:      map[string]*simSlice{},
		assignments: map[string]plan.Assigned{},
		reports:     map[hostKey]state.HostReport{},
		program:     func(*state.Run, int) program { return program{} },
		createTakes: 2 * time.Second, bootTakes: time.Second, deleteTakes: 2 * time.Second, stopTakes: time.Second,
		loses: func(plan.Action) bool { return false },
		log:   func(string, ...any) {},
	}
	if t, property := t.(*rapid.T); property {
		w.turns = rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "turns")
	}
	w.planner = w.newPlanner()
	w.saved, w.written = w.doc, w.doc
	w.oracle.start(w)
	return w
}

// newPlanner is one that decides about so many waiting jobs at once as the world says.
func (w *world) newPlanner() *Planner { return &Planner{waits: waits{turns: turns{most: w.turns}}} }

// accept takes a configuration in, as `fray apply` does.
func (w *world) accept(desired schema.Desired) {
	w.acceptWith(desired, func(*state.Document) {})
}

func (w *world) acceptWith(desired schema.Desired, change func(*state.Document)) {
	next := planchange.Accepted(w.doc, desired)
	next.Revision++
	change(next)
	w.doc = next
	w.save()
}

// mark sets a job's wishes, as --replace and `fray stop` do.
func (w *world) mark(addr schema.Address, change func(*state.Job)) {
	w.acceptWith(w.doc.Desired, func(doc *state.Document) {
		j := *doc.Jobs[addr]
		change(&j)
		doc.Jobs[addr] = &j
	})
}

func (w *world) save() {
	w.meter()
	w.saved, w.written, w.savedAt = w.doc.Clone(), w.doc, w.now
}

// crash ends the controller and starts another one from what was saved.
func (w *world) crash() {
	w.doc, w.written = w.saved, w.saved
	w.planner = w.newPlanner()
	w.silence = map[hostKey]observed{}
	w.epoch++
}

// step is one step of the controller and one of everybody else, a moment later.
func (w *world) step(dt time.Duration) *plan.Plan {
	w.t.Helper()
	obs := w.observe()
	before := w.doc
	p := w.oracle.planned(w.planner, obs)
	w.oracle.diffed(before, obs, p)
	w.doc, w.last = p.Next, p
	w.meterIfDue()
	if w.written != w.doc && w.now.Sub(w.savedAt) >= time.Second {
		w.save()
	}
	for _, a := range p.Actions {
		if a.AfterSave && w.written != w.doc || w.loses(a) {
			continue
		}
		w.oracle.acting(a)
		w.fold(a, w.carryOut(a))
	}
	w.now = w.now.Add(dt)
	w.live()
	w.oracle.lived()
	return p
}

// settle steps until nothing is left to do, nothing waits and every task that
// is to end has.
func (w *world) settle(within time.Duration) *plan.Plan {
	w.t.Helper()
	calm := 0
	return w.until(within, "settled", func(p *plan.Plan) bool {
		calm++
		if !p.Empty() || len(p.Pending) > 0 || w.ending() {
			calm = 0
		}
		return calm == 2
	})
}

// ending reports whether a task runs that will end by itself.
func (w *world) ending() bool {
	for _, s := range w.slices {
		for _, h := range s.hosts {
			if h.live && !h.endsAt.IsZero() {
				return true
			}
		}
	}
	return false
}

// pace is the time from one step to the next.
const pace = 500 * time.Millisecond

func (w *world) until(within time.Duration, what string, done func(*plan.Plan) bool) *plan.Plan {
	w.t.Helper()
	end := w.now.Add(within)
	for w.now.Before(end) {
		if p := w.step(pace); done(p) {
			return p
		}
	}
	w.t.Fatalf("not %s after %s\n%s", what, within, w.describe())
	return nil
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.step(500 * time.Millisecond)
	}
}

// pass lets much time pass, in steps that are still shorter than a host's silence.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.step(5 * time.Second)
	}
}
