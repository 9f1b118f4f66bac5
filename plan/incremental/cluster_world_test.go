package incremental

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// cluster is a larger and quicker world than world: thousands of slices for weeks,
// in steps of minutes. Slices take their time to come and go, die, and are refused
// in zones that have run out; programs fail or end after they have run for long
// enough. It is replayed from its seed.
type cluster struct {
	t       testing.TB
	seed    uint64
	dice    *rand.Rand
	now     time.Time
	pace    time.Duration
	doc     *state.Document
	planner *Planner
	last    *plan.Plan
	obs     *plan.Observed

	slices map[string]*clusterSlice
	work   map[schema.Address]time.Duration // that programs have yet to do
	fails  map[schema.Address]bool          // those that end badly
	room   map[string]int                   // by zone: slices that can be had
	life   time.Duration                    // mean time to a slice's death, 0: none die
	object state.Generation
	losses map[schema.Address]int // of slices, by who ran there
	broke  map[schema.Address]int // how often a program has failed
	chips  map[string]int         // of TPU types
	index  map[string]int         // of namespaces
	shares shareLog

	attempts map[string]runningAs  // that run, by the ids of their jobs
	holders  map[string]*state.Job // of slices, by their names

	drawn int // units
	tally clusterTally
}

type runningAs struct {
	number     int
	generation int64
}

// clusterTally counts what happened, so that a test shows that something did.
type clusterTally struct {
	steps, launched, reserved, succeeded, failed, yields, lost, refused, waited int

	tasks, mostTasks     int // that run, and at most at once
	mostSlices, mostJobs int // with machines of their own, and running

	waits  [capacity.BandCount]time.Duration // the longest in each band
	longer time.Duration                     // of all looks together, by the clock on the wall
	most   time.Duration                     // of one look
	digest uint64                            // of what was done: the same if nothing is decided otherwise
}

// String sums it up in a line.
func (y clusterTally) String() string {
	mean := y.longer / time.Duration(max(y.steps, 1))
	return fmt.Sprintf("%d steps of %s in the mean (longest %s), %d jobs (%d succeeded, %d failed, %d times delayed), %d yields, %d slices lost, %d refused, "+
		"at most %d tasks of %d jobs on %d slices; longest waits %s; digest %x",
		y.steps, mean.Round(100*time.Microsecond), y.most.Round(time.Millisecond), y.launched, y.succeeded, y.failed, y.reserved, y.yields, y.lost, y.refused,
		y.mostTasks, y.mostJobs, y.mostSlices, y.waits, y.digest)
}

type clusterSlice struct {
	spec    schema.SliceSpec
	readyAt time.Time
	goneAt  time.Time // its deletion is over; zero: it is not deleted
	diesAt  time.Time
	run     *state.Run // what its hosts run
	gen     int64      // of that
	stops   *state.Run // what they are ending
	left    bool       // a packed task that is to go
}

func (s *clusterSlice) isPacked() bool { return s.spec.On != "" }

func newCluster(t testing.TB, seed uint64) *cluster {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &cluster{
		t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 9)), now: now, pace: 2 * time.Minute,
		doc:     &state.Document{FormatVersion: state.FormatVersion, Lineage: testLineage},
		planner: &Planner{},
		obs: &plan.Observed{
			Inventories: map[schema.ProviderName]schema.Inventory{}, Assignments: map[string]plan.Assigned{}, Hosts: map[string][]plan.Host{},
		},
		slices: map[string]*clusterSlice{}, work: map[schema.Address]time.Duration{}, fails: map[schema.Address]bool{},
		room: map[string]int{}, losses: map[schema.Address]int{}, broke: map[schema.Address]int{}, chips: map[string]int{}, index: map[string]int{},
		attempts: map[string]runningAs{}, holders: map[string]*state.Job{},
	}
}

// declare says what is declared from the beginning.
func (c *cluster) declare(desired schema.Desired) {
	c.doc.Desired = desired
	for i := range desired.Namespaces {
		c.index[desired.Namespaces[i].Addr.Name] = i
	}
}

// say tells what goes on.
func (c *cluster) say(format string, args ...any) {
	c.t.Helper()
	c.t.Logf("%s: "+format, append([]any{c.now.Format(time.DateTime)}, args...)...)
}

func (c *cluster) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\nat %s, step %d; replay with -cluster.seed=%d", fmt.Sprintf(format, args...), c.now.Format(time.DateTime), c.tally.steps, c.seed)
}

// minutes draws a time between two.
func (c *cluster) minutes(low, high int) time.Duration {
	return time.Duration(60*low+c.dice.IntN(60*(high-low)+1)) * time.Second
}

// launch takes jobs in, one launching each, or all of a group.
func (c *cluster) launch(all []launch.Launching) {
	c.t.Helper()
	if len(all) == 0 {
		return
	}
	doc, err := launch.Launched(c.doc, all, c.now)
	if err != nil {
		c.fail("launch: %v", err)
	}
	c.doc = doc
	for _, l := range all {
		if l.Job != nil {
			c.tally.launched++
		}
	}
}

// step is one look of the controller and what the world makes of it.
func (c *cluster) step() {
	c.t.Helper()
	c.list()
	before := c.doc
	if c.tally.steps%97 == 96 {
		c.planner = &Planner{} // another controller takes over
	}
	began := time.Now()
	p := c.planner.Diff(&c.doc.Desired, c.doc, c.obs, c.now)
	took := time.Since(began)
	if since := c.planner.Edits; len(since) == 0 {
		c.planner.Edits = []*state.Edits{{}}
	} else if since[0].From() != nil {
		checkEdits(c.t, since[0], since[0].From(), p.Next)
	}
	c.planner.Edits[0].Begin(p.Next)
	c.tally.longer, c.tally.most = c.tally.longer+took, max(c.tally.most, took)
	if c.tally.steps%31 == 30 {
		if diff := differences(reconcile.Diff(&before.Desired, before, c.obs, c.now), p); diff != "" {
			c.fail("a Planner finds another plan (-Diff +Planner)\n%s", diff)
		}
	}
	c.doc, c.last = p.Next, p
	c.inspect(before, p)
	for i := range p.Actions {
		c.note(&p.Actions[i])
		c.carryOut(&p.Actions[i])
	}
	c.now = c.now.Add(c.pace)
	c.live()
	c.tally.steps++
}

// note takes an action into the digest.
func (c *cluster) note(a *plan.Action) {
	sum := fnv.New64a()
	fmt.Fprint(sum, c.tally.digest, a.Verb, a.Slice.Name, c.tally.steps)
	c.tally.digest = sum.Sum64()
}

// list makes the inventories anew.
func (c *cluster) list() {
	lists := map[schema.ProviderName][]schema.SliceStatus{schema.ProviderLocal: nil, schema.ProviderGCP: nil}
	for _, name := range slices.Sorted(maps.Keys(c.slices)) {
		s := c.slices[name]
		if s.isPacked() {
			continue
		}
		st := schema.SliceStatus{Spec: s.spec, Phase: schema.SliceReady}
		switch {
		case !s.goneAt.IsZero():
			st.Phase = schema.SliceDeleting
		case c.now.Before(s.readyAt):
			st.Phase = schema.SliceCreating
		}
		lists[s.spec.Provider] = append(lists[s.spec.Provider], st)
	}
	for name, list := range lists {
		c.obs.Inventories[name] = schema.Inventory{Slices: list}
	}
	c.obs.Confirmations = map[string]plan.Confirmation{}
	for name := range c.doc.Slices {
		if c.slices[name] == nil {
			c.obs.Confirmations[name] = plan.Confirmation{Answer: snapshot.AnswerGone, ReadAt: c.now}
		}
	}
}

func (c *cluster) carryOut(a *plan.Action) {
	c.t.Helper()
	name := a.Slice.Name
	switch a.Verb {
	case plan.CreateSlice:
		var failure *capacity.Failure
		if zone := a.Slice.Zone; c.slices[name] == nil && zone != "" && c.inZone(zone) >= c.room[zone] {
			failure = &capacity.Failure{Kind: schema.ErrorCapacity, Text: errStockout.Error()}
			c.tally.refused++
		}
		if failure == nil && c.slices[name] == nil {
			s := &clusterSlice{spec: *a.Slice, readyAt: c.now.Add(c.minutes(1, 6))}
			if c.life > 0 {
				mean := float64(c.life)
				if !a.Slice.Preemptible {
					mean *= 24
				}
				s.diesAt = s.readyAt.Add(time.Duration(c.dice.ExpFloat64() * mean))
			}
			c.slices[name] = s
		}
		c.doc = c.planner.Folded(c.doc, *a, failure, c.now)
	case plan.DeleteSlice:
		if s := c.slices[name]; s != nil && s.goneAt.IsZero() {
			s.goneAt = c.now.Add(c.minutes(0, 4))
		}
	case plan.Assign:
		c.assign(a)
	case plan.ForgetSlice:
		if c.slices[name] != nil {
			c.fail("the mailbox of slice %s is forgotten though it lives", name)
		}
		delete(c.obs.Assignments, name)
		delete(c.obs.Hosts, name)
	case plan.RepairSlice, plan.UpdateSlice:
	}
}

// forget drops the records of what has ended a while ago, sooner than plan does.
func (c *cluster) forget() {
	over := func(j *state.Job) bool {
		return j.Status.Ended() && len(j.Slices) == 0 && c.now.Sub(j.EndedAt) > 20*time.Minute
	}
	doc, occupied := c.doc.Clone(), map[schema.Address]bool{}
	for addr, j := range c.doc.Jobs {
		if !over(j) {
			occupied[addr.GroupAddress()] = true
			continue
		}
		delete(doc.Jobs, addr)
		delete(c.work, addr)
		delete(c.fails, addr)
		delete(c.losses, addr)
		delete(c.broke, addr)
	}
	maps.DeleteFunc(doc.Resources, func(addr schema.Address, r state.Resource) bool {
		return r.Launch != nil && r.Group != nil && !occupied[addr]
	})
	if len(doc.Jobs) < len(c.doc.Jobs) {
		c.doc = doc
	}
}

func (c *cluster) inZone(zone string) int {
	n := 0
	for _, s := range c.slices {
		if s.spec.Zone == zone {
			n++
		}
	}
	return n
}

// assign writes an assignment; the hosts see it by the next step.
func (c *cluster) assign(a *plan.Action) {
	c.t.Helper()
	name := a.Slice.Name
	if c.obs.Assignments[name].Object != a.Object {
		return
	}
	c.object++
	c.obs.Assignments[name] = plan.Assigned{Assignment: *a.Assignment, Object: c.object}
	run, s := a.Assignment.Run, c.slices[name]
	if run == nil || s == nil {
		return
	}
	if s.run != nil || s.stops != nil {
		c.fail("%s is assigned to slice %s, where another task still runs", run.Job, name)
	}
}
