package plan

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var (
	clusterSeed   = flag.Uint64("cluster.seed", 0, "the seed; 0: a random one")
	clusterSlices = flag.Int("cluster.slices", 40, "so many slices of capacity")
	clusterSpaces = flag.Int("cluster.namespaces", 10, "so many namespaces")
	clusterFor    = flag.Duration("cluster.for", 36*time.Hour, "for so long")
	clusterPace   = flag.Duration("cluster.pace", 2*time.Minute, "with so much time between two steps")
)

func seedOf(t *testing.T) uint64 {
	seed := *clusterSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return seed
}

const simPool = "pool"

func clusterZones() []string { return []string{"us-west4-a", "us-east5-a", "europe-west4-b"} }

// clusterOf is what is declared: namespaces with weights, and some with limits,
// budgets and users; a provider with a limit, one with zones, and a reservation.
func clusterOf(dice *rand.Rand, capacity, spaces int) schema.Desired {
	desired := schema.Desired{Providers: []schema.Provider{
		{Name: schema.ProviderLocal, Slices: capacity * 8 / 10},
		{Name: schema.ProviderGCP, Project: "p", Zones: clusterZones()},
	}}
	pool := newPool(simPool, "v5litepod-16", max(2, capacity/20))
	pool.Max.Slices, pool.Preemptible = 2*pool.Min.Slices, true
	desired.Reservations = []schema.Reservation{pool}
	for i := range spaces {
		n := schema.Namespace{Addr: spaceAddr(fmt.Sprintf("n%02d", i)), Weight: float64(1 + dice.IntN(3))}
		part := 16 * capacity / spaces // chips
		switch i % 5 {
		case 1:
			n.MaxChips = max(128, part)
		case 2:
			n.Budget = max(32, part/2)
		case 3:
			n.Users = []schema.UserShare{{Name: "ann", Weight: 2}, {Name: "bob", MaxChips: max(128, part/2)}}
		}
		desired.Namespaces = append(desired.Namespaces, n)
	}
	return desired
}

// arrivals draws the jobs that come in one step: single ones and gangs of many
// shapes, of all bands, in all namespaces, and now and then a group.
func (c *cluster) arrivals(n int) {
	for range n {
		k := c.tally.launched
		space := &c.doc.Desired.Namespaces[c.dice.IntN(len(c.doc.Desired.Namespaces))]
		name := fmt.Sprintf("j%d", k)
		j := newJob(name, inSpace(space.Addr.Name), onTPU([]string{"v5litepod-4", "v5litepod-16", "v5litepod-16", "v5litepod-32"}[c.dice.IntN(4)]),
			onSlices([]int{1, 1, 1, 1, 2, 4}[c.dice.IntN(6)]), inBand([]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch, schema.BandBatch}[c.dice.IntN(4)]))
		j.Addr = schema.LaunchedAddress(schema.KindJob, space.Addr.Name, "", name)
		j.Retries = schema.Retries{Failure: 1, Preemption: schema.Unlimited}
		j.Priority = []int{0, 0, 0, 5}[c.dice.IntN(4)]
		if len(space.Users) > 0 {
			j.User = []string{"ann", "bob", "eve"}[c.dice.IntN(3)]
		}
		switch c.dice.IntN(10) {
		case 0:
			j.Resources.Provider = schema.ProviderGCP
		case 1:
			j.Resources = schema.Resources{Provider: schema.ProviderLocal, Reservation: simPool, TPU: "v5litepod-16", Slices: 1 + c.dice.IntN(2), Preemptible: true}
		case 2:
			c.launchGroup(space, name, j)
			continue
		}
		c.prepareWork(&j)
		c.launch([]Launching{{Job: &j, Launch: state.Launch{Name: name, By: "sim"}}})
	}
}

func (c *cluster) prepareWork(j *schema.Job) {
	c.work[j.Addr] = time.Duration(10+c.dice.ExpFloat64()*50) * time.Minute
	c.fails[j.Addr] = c.dice.IntN(10) == 0
}

func (c *cluster) launchGroup(space *schema.Namespace, name string, like schema.Job) {
	group := schema.JobGroup{Addr: schema.LaunchedAddress(schema.KindJobGroup, space.Addr.Name, "", name), Namespace: space.Addr.Name}
	all := []Launching{{Group: &group, Launch: state.Launch{Name: name, By: "sim"}}}
	like.Resources.Slices = 1
	for _, member := range []string{"a", "b"} {
		j := like
		j.Addr = schema.LaunchedAddress(schema.KindJob, space.Addr.Name, name, member)
		c.prepareWork(&j)
		all = append(all, Launching{Job: &j, Launch: state.Launch{Name: member, By: "sim"}})
	}
	c.launch(all)
}

// TestClusterSimulation runs a cluster that is asked for about as much as it has,
// in bursts, with an eye on all that must never happen.
func TestClusterSimulation(t *testing.T) {
	seed := seedOf(t)
	c := newCluster(t, seed, schema.Desired{})
	c.doc.Desired = clusterOf(c.dice, *clusterSlices, *clusterSpaces)
	c.pace, c.life = *clusterPace, 30*time.Hour
	end, began := c.now.Add(*clusterFor), time.Now()
	most := 0
	for c.now.Before(end) {
		c.weather()
		c.arrivals(c.burst())
		c.forget()
		tasks := c.tally.tasks
		c.step()
		if most = max(most, c.tally.tasks-tasks); c.tally.steps%500 == 0 {
			t.Logf("%s: %+v", c.now.Format(time.DateTime), c.tally)
		}
	}
	for range 20_000 { // and then nobody comes any more
		c.clear()
		c.step()
		if c.allEnded() {
			break
		}
	}
	for range 60 {
		c.step()
	}
	c.empty()
	t.Logf("%+v, at most %d tasks at once, %s", c.tally, most, time.Since(began).Round(time.Second))
	if c.tally.yields == 0 || c.tally.lost == 0 || c.tally.refused == 0 || c.tally.failed == 0 {
		t.Errorf("%+v: something did not happen; the test shows little", c.tally)
	}
}

// burst is how many jobs come: as many as keep the capacity busy in the mean, by
// day more than by night.
func (c *cluster) burst() int {
	mean := float64(*clusterSlices) * c.pace.Minutes() / 60 / 1.9 * 0.95
	mean *= 1 + 0.6*math.Sin(2*math.Pi*float64(c.now.Unix()%86400)/86400)
	n := 0
	for p := c.dice.Float64() * math.Exp(mean); n < 10*int(mean+2); n++ { // Poisson, by its sum
		if p -= math.Pow(mean, float64(n)) / math.Gamma(float64(n+1)); p < 0 {
			break
		}
	}
	return n
}

// weather opens and shuts zones.
func (c *cluster) weather() {
	for _, zone := range clusterZones() {
		if _, known := c.room[zone]; !known || c.dice.IntN(200) == 0 {
			c.room[zone] = c.dice.IntN(2) * (*clusterSlices/12 + 2)
		}
	}
}

func (c *cluster) clear() {
	for _, zone := range clusterZones() {
		c.room[zone] = *clusterSlices
	}
}

func (c *cluster) allEnded() bool {
	for _, j := range c.doc.Jobs {
		if !j.Status.Ended() {
			return false
		}
	}
	return true
}

// TestClusterShares: while all namespaces want more than there is, each has what
// it is due, within 5%, on average over time.
func TestClusterShares(t *testing.T) {
	seed := seedOf(t)
	c := newCluster(t, seed, schema.Desired{})
	spaces := *clusterSpaces
	var desired schema.Desired
	var weights float64
	for i := range spaces {
		n := schema.Namespace{Addr: spaceAddr(fmt.Sprintf("n%02d", i)), Weight: float64(1 + i%3)}
		weights += n.Weight
		desired.Namespaces = append(desired.Namespaces, n)
	}
	capacity := max(10, *clusterSlices/int(weights)) * int(weights) // so that all are due whole slices
	desired.Providers = []schema.Provider{{Name: schema.ProviderLocal, Slices: capacity}}
	c.doc.Desired, c.pace = desired, *clusterPace
	held, waiting := make([]float64, spaces), make([]int, spaces)
	steps := max(300, int(*clusterFor/c.pace/4))
	for step := range steps {
		for i := range waiting {
			for ; waiting[i] < 5; waiting[i]++ {
				name := fmt.Sprintf("j%d", c.tally.launched)
				j := newJob(name, inSpace(desired.Namespaces[i].Addr.Name), onTPU("v5litepod-8"))
				j.Addr = schema.LaunchedAddress(schema.KindJob, j.Namespace, "", name)
				c.work[j.Addr] = c.minutes(10, 50+10*(i%4)) // who runs for longer is due no more
				c.launch([]Launching{{Job: &j, Launch: state.Launch{Name: name}}})
			}
		}
		c.forget()
		c.step()
		clear(waiting)
		for _, j := range c.doc.Jobs {
			i := slices.IndexFunc(desired.Namespaces, func(n schema.Namespace) bool { return n.Addr.Name == j.Spec.Namespace })
			if j.Status == schema.JobPending && len(j.Slices) == 0 {
				waiting[i]++
			}
			if step >= steps/4 {
				held[i] += float64(len(j.Slices))
			}
		}
	}
	var all float64
	for _, n := range held {
		all += n
	}
	for i := range held {
		due := desired.Namespaces[i].Weight / weights
		if got := held[i] / all; math.Abs(got-due) > 0.05*due {
			t.Errorf("%s had %.2f%% of what was there, and is due %.2f%%; replay with -cluster.seed=%d", desired.Namespaces[i].Addr, 100*got, 100*due, seed)
		}
	}
	if used := all / float64((steps-steps/4)*capacity); used < 0.9 {
		t.Errorf("%.0f%% of the capacity was held; the test shows little", 100*used)
	}
}
