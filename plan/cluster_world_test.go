package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// cluster is a larger and quicker world than world: thousands of slices for weeks,
// in steps of minutes. Slices take their time to come and go, die, and are refused
// in zones that have run out; programs fail or end after they have run for long
// enough. It is replayed from its seed.
type cluster struct {
	t       tester
	seed    uint64
	dice    *rand.Rand
	now     time.Time
	pace    time.Duration
	doc     *state.Document
	planner *Planner
	last    *Plan
	obs     *Observed

	slices map[string]*clusterSlice
	work   map[schema.Address]time.Duration // that programs have yet to do
	fails  map[schema.Address]bool          // those that end badly
	room   map[string]int                   // by zone: slices that can be had
	life   time.Duration                    // mean time to a slice's death, 0: none die
	object store.Generation
	losses map[schema.Address]int // of slices, by who ran there
	tally  clusterTally
}

// clusterTally counts what happened, so that a test shows that something did.
type clusterTally struct {
	steps, launched, succeeded, failed, yields, lost, refused, waited, tasks int
}

type clusterSlice struct {
	spec    schema.SliceSpec
	readyAt time.Time
	goneAt  time.Time // its deletion is over; zero: it is not deleted
	diesAt  time.Time
	run     *store.Run // what its hosts run
	gen     int64      // of that
	stops   *store.Run // what they are ending
}

func newCluster(t tester, seed uint64, desired schema.Desired) *cluster {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &cluster{
		t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 9)), now: now, pace: 2 * time.Minute,
		doc:     &state.Document{FormatVersion: state.FormatVersion, Lineage: testLineage, Desired: desired},
		planner: &Planner{},
		obs: &Observed{
			Inventories: map[schema.ProviderName]schema.Inventory{}, Assignments: map[string]Assigned{}, Hosts: map[string][]Host{},
		},
		slices: map[string]*clusterSlice{}, work: map[schema.Address]time.Duration{}, fails: map[schema.Address]bool{},
		room: map[string]int{}, losses: map[schema.Address]int{},
	}
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
func (c *cluster) launch(all []Launching) {
	c.t.Helper()
	doc, err := Launched(c.doc, all, c.now)
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
	p := c.planner.Diff(&c.doc.Desired, c.doc, c.obs, c.now)
	if c.tally.steps%31 == 30 {
		if diff := differences(Diff(&before.Desired, before, c.obs, c.now), p); diff != "" {
			c.fail("a Planner finds another plan (-Diff +Planner)\n%s", diff)
		}
	}
	c.doc, c.last = p.Next, p
	c.inspect(before, p)
	for i := range p.Actions {
		c.carryOut(&p.Actions[i])
	}
	c.now = c.now.Add(c.pace)
	c.live()
	c.tally.steps++
}

// list makes the inventories anew.
func (c *cluster) list() {
	lists := map[schema.ProviderName][]schema.SliceStatus{schema.ProviderLocal: nil, schema.ProviderGCP: nil}
	for _, name := range slices.Sorted(maps.Keys(c.slices)) {
		s := c.slices[name]
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
}

func (c *cluster) carryOut(a *Action) {
	c.t.Helper()
	name := a.Slice.Name
	switch a.Verb {
	case CreateSlice:
		var failure *Failure
		if zone := a.Slice.Zone; c.slices[name] == nil && zone != "" && c.inZone(zone) >= c.room[zone] {
			failure = &Failure{Kind: schema.ErrorCapacity, Text: errStockout.Error()}
			c.tally.refused++
		}
		if failure == nil && c.slices[name] == nil {
			s := &clusterSlice{spec: a.Slice, readyAt: c.now.Add(c.minutes(1, 6))}
			if c.life > 0 && a.Slice.Preemptible {
				s.diesAt = s.readyAt.Add(time.Duration(c.dice.ExpFloat64() * float64(c.life)))
			}
			c.slices[name] = s
		}
		c.doc = Folded(c.doc, *a, failure, c.now)
	case DeleteSlice:
		if s := c.slices[name]; s != nil && s.goneAt.IsZero() {
			s.goneAt = c.now.Add(c.minutes(0, 4))
		}
	case Assign:
		c.assign(a)
	case ForgetSlice:
		if c.slices[name] != nil {
			c.fail("the mailbox of slice %s is forgotten though it lives", name)
		}
		delete(c.obs.Assignments, name)
		delete(c.obs.Hosts, name)
	case MendSlice, UpdateSlice:
	}
}

// forget drops the records of what has ended a while ago, sooner than plan does.
func (c *cluster) forget() {
	doc := c.doc.Clone()
	maps.DeleteFunc(doc.Jobs, func(_ schema.Address, j *state.Job) bool {
		return j.Status.Ended() && len(j.Slices) == 0 && c.now.Sub(j.EndedAt) > 20*time.Minute
	})
	maps.DeleteFunc(doc.Resources, func(addr schema.Address, r state.Resource) bool {
		return r.Launch != nil && r.Group != nil && !occupiedAny(doc, addr)
	})
	if len(doc.Jobs) < len(c.doc.Jobs) {
		c.doc = doc
	}
}

func occupiedAny(doc *state.Document, group schema.Address) bool {
	for addr := range doc.Jobs {
		if addr.GroupAddress() == group {
			return true
		}
	}
	return false
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
func (c *cluster) assign(a *Action) {
	c.t.Helper()
	name := a.Slice.Name
	if c.obs.Assignments[name].Object != a.Object {
		return
	}
	c.object++
	c.obs.Assignments[name] = Assigned{Assignment: *a.Assignment, Object: c.object}
	run, s := a.Assignment.Run, c.slices[name]
	if run == nil || s == nil {
		return
	}
	if s.run != nil || s.stops != nil {
		c.fail("%s is assigned to slice %s, where another task still runs", run.Job, name)
	}
}

// live lets time pass.
func (c *cluster) live() {
	names := slices.Sorted(maps.Keys(c.slices))
	for _, name := range names {
		s := c.slices[name]
		switch {
		case !s.goneAt.IsZero() && !c.now.Before(s.goneAt), !s.diesAt.IsZero() && c.now.After(s.diesAt):
			if s.goneAt.IsZero() {
				c.lose(name)
			}
			delete(c.slices, name)
		case !c.now.Before(s.readyAt) && len(c.obs.Hosts[name]) == 0:
			hosts := make([]Host, s.spec.Hosts)
			for n := range hosts {
				hosts[n] = Host{HostReport: store.HostReport{Slice: name, Host: n, Address: "10.0.0.1"}}
			}
			c.obs.Hosts[name] = hosts
		}
	}
	for _, name := range names {
		if s := c.slices[name]; s != nil {
			c.obey(name, s)
		}
	}
	c.proceed()
}

// lose counts the end of a slice for whoever holds it.
func (c *cluster) lose(name string) {
	c.tally.lost++
	for addr, j := range c.doc.Jobs {
		if slices.Contains(j.Slices, name) {
			c.losses[addr]++
		}
	}
}

// obey has the hosts of a slice do what they are told; to stop takes them a step.
func (c *cluster) obey(name string, s *clusterSlice) {
	a := c.obs.Assignments[name]
	hosts := c.obs.Hosts[name]
	if len(hosts) == 0 || a.Generation == hosts[0].Generation {
		return
	}
	if s.run != nil {
		s.stops, s.run = s.run, nil
		return
	}
	s.stops, s.run, s.gen = nil, a.Run, a.Generation
	hosts = slices.Clone(hosts)
	for n := range hosts {
		hosts[n].Generation = a.Generation
		if a.Run != nil {
			hosts[n].Task = &store.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true}
		}
	}
	c.obs.Hosts[name] = hosts
}

// proceed takes the work of programs forward that run on all their slices, and
// ends those that are done.
func (c *cluster) proceed() {
	running := map[schema.Address][]string{}
	for name, s := range c.slices {
		if s.run != nil {
			running[s.run.Job] = append(running[s.run.Job], name)
			c.tally.tasks += s.spec.Hosts
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(running), schema.Address.Compare) {
		names := running[addr]
		run := c.slices[names[0]].run
		if len(names) < run.NumSlices {
			continue
		}
		if c.work[addr] -= c.pace; c.work[addr] > 0 {
			continue
		}
		end := schema.TaskSucceeded
		if c.fails[addr] && c.dice.IntN(2) == 0 {
			end, c.work[addr] = schema.TaskFailed, 10*time.Minute
		}
		for _, name := range names {
			hosts := slices.Clone(c.obs.Hosts[name])
			for n := range hosts {
				report := *hosts[n].Task
				report.State = end
				hosts[n].Task = &report
			}
			c.obs.Hosts[name] = hosts
			c.slices[name].run = nil
		}
	}
}
