package incremental

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The load of the simulation, which a seed replays:
//
//   - Units of work arrive as a Poisson process: by day 60% more than in the mean
//     and by night 60% less, in the mean 85% of what there is, and 150% in the
//     crunch: the last third but a tenth of each third of the time, in a month
//     three days in ten.
//   - They come from the namespaces unevenly, from the first of seven kinds seven
//     times as often as from the last: some want more than they are due all of
//     the time, others in crunches or never. Who has [queueMost] units that wait
//     sends no more. Four in five namespaces want slices of chips and the others
//     cores of packed hosts, so that what each is due is a matter of one resource.
//   - A unit works for one of two exponential times, 70% of them for a quarter of
//     the mean and the others for 2.75 times it, and for ten times at most.
//   - One in ten programs fails, again and again or only now and then. A TPU slice
//     is preempted after an exponential time of 30 hours in the mean, other machines
//     die after a month. What was done is not lost; one job in five gives up after
//     two preemptions.
//   - One in ten goes to a cloud whose zones open and shut, one in ten draws from a
//     reservation, one in ten is a group of two jobs. A quarter is of band production,
//     a quarter interactive, and half of them batch.

var (
	clusterCores = flag.Int("cluster.cores", 16, "cores of each host for packed jobs")
	clusterWork  = flag.Duration("cluster.work", time.Hour, "how long a job works in the mean")
)

// queueMost is how many units of a namespace wait at most: its people send no
// more, as in any closed system.
const queueMost = 12

const (
	simPool = "pool" // of TPU slices, whole
	simCPU  = "cpu"  // of hosts for packed jobs
)

func clusterZones() []string { return []string{"us-west4-a", "us-east5-a", "europe-west4-b"} }

// packs reports whether the i-th namespace is one of those that want cores.
func packs(i int) bool { return i%5 == 4 }

// clusterOf is what is declared: namespaces with weights, and some with limits,
// budgets and users; a provider with a limit, one with zones, and reservations.
func clusterOf(dice *rand.Rand, capacity, spaces int) schema.Desired {
	desired := schema.Desired{Providers: []schema.Provider{
		{Name: schema.ProviderLocal, Slices: capacity * 9 / 10},
		{Name: schema.ProviderGCP, Project: "p", Zones: clusterZones()},
	}}
	pool := newPool(simPool, "v5litepod-16", max(2, capacity/20))
	pool.Max.Slices, pool.Preemptible = 2*pool.Min.Slices, true
	desired.Reservations = []schema.Reservation{cpuPool(simCPU, float64(*clusterCores), capacity/10), pool}
	for i := range spaces {
		n := schema.Namespace{Addr: spaceAddr(fmt.Sprintf("n%02d", i)), Weight: float64(1 + dice.IntN(3))}
		part := 16 * capacity / spaces // chips
		switch i % 5 {
		case 1:
			n.MaxChips = max(256, part)
		case 2:
			n.Budget = max(32, part/2)
		case 3:
			n.Users = []schema.UserShare{{Name: "ann", Weight: 2}, {Name: "bob", MaxChips: max(256, part/2)}}
		}
		desired.Namespaces = append(desired.Namespaces, n)
	}
	return desired
}

// burst is how many units come: by day more than by night, and more than there is
// room for while there is a crunch.
func (c *cluster) burst(elapsed, all time.Duration) int {
	base := 0.85
	if into := elapsed % (all / 3); into > all/3*6/10 && into < all/3*9/10 {
		base = 1.5
	}
	// A unit takes two slices in the mean, or two thirds of a host.
	mean := base * float64(*clusterSlices) / 1.7 * c.pace.Hours() / clusterWork.Hours()
	return c.poisson(mean * (1 + 0.6*math.Sin(2*math.Pi*float64(c.now.Unix()%86400)/86400)))
}

func (c *cluster) poisson(mean float64) int {
	n := 0
	for p := c.dice.Float64(); n < 10*int(mean+2); n++ { // by its sum
		logs, _ := math.Lgamma(float64(n + 1))
		if p -= math.Exp(float64(n)*math.Log(mean) - mean - logs); p < 0 {
			break
		}
	}
	return n
}

// arrivals launches the units that come in one step.
func (c *cluster) arrivals(n int) {
	waiting := map[string]int{}
	for _, j := range c.doc.Jobs {
		if j.Status == schema.JobPending && len(j.Slices) == 0 {
			waiting[j.Spec.Namespace]++
		}
	}
	var all []launch.Launching
	for range n {
		i := c.popular()
		space := &c.doc.Desired.Namespaces[i]
		if waiting[space.Addr.Name]++; waiting[space.Addr.Name] > queueMost {
			c.tally.reserved++
			continue
		}
		c.drawn++
		name := fmt.Sprintf("j%d", c.drawn)
		j := newJob(name, inSpace(space.Addr.Name), inBand([]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch, schema.BandBatch}[c.dice.IntN(4)]))
		j.Addr = schema.LaunchedAddress(schema.KindJob, space.Addr.Name, "", name)
		j.Retries = schema.Retries{Failure: 1, Preemption: []int{schema.Unlimited, schema.Unlimited, schema.Unlimited, schema.Unlimited, 2}[c.dice.IntN(5)]}
		j.Priority = []int{0, 0, 0, 5}[c.dice.IntN(4)]
		if len(space.Users) > 0 {
			j.User = []string{"ann", "bob", "eve"}[c.dice.IntN(3)]
		}
		if packs(i) {
			packed(simCPU, []float64{1, 1, 1, 2}[c.dice.IntN(4)], 1+c.dice.IntN(*clusterCores))(&j)
		} else {
			onTPU([]string{"v5litepod-4", "v5litepod-16", "v5litepod-16", "v5litepod-32"}[c.dice.IntN(4)])(&j)
			onSlices([]int{1, 1, 1, 1, 2, 4}[c.dice.IntN(6)])(&j)
		}
		all = append(all, c.shaped(j, space, name)...)
	}
	c.launch(all)
}

// popular draws a namespace.
func (c *cluster) popular() int {
	for {
		i := c.dice.IntN(len(c.doc.Desired.Namespaces))
		if c.dice.IntN(7) >= i%7 {
			return i
		}
	}
}

// shaped has a job be a group now and then, or of another place.
func (c *cluster) shaped(j schema.Job, space *schema.Namespace, name string) []launch.Launching {
	switch kind := c.dice.IntN(10); {
	case kind == 2:
		return c.grouped(j, space, name)
	case j.Resources.Packed:
	case kind == 0:
		j.Resources.Provider = schema.ProviderGCP
	case kind == 1:
		j.Resources = schema.Resources{Provider: schema.ProviderLocal, Reservation: simPool, TPU: "v5litepod-16", Slices: 1 + c.dice.IntN(2), Preemptible: true}
	}
	c.prepareWork(&j)
	return []launch.Launching{{Job: &j, Launch: state.Launch{Name: name, By: "sim"}}}
}

func (c *cluster) prepareWork(j *schema.Job) {
	mean := clusterWork.Hours() / 4
	if c.dice.IntN(10) < 3 {
		mean *= 11
	}
	hours := min(mean*c.dice.ExpFloat64(), 10*clusterWork.Hours())
	c.work[j.Addr] = max(10*time.Minute, time.Duration(hours*float64(time.Hour)))
	c.fails[j.Addr] = c.dice.IntN(10) == 0
}

func (c *cluster) grouped(like schema.Job, space *schema.Namespace, name string) []launch.Launching {
	group := schema.JobGroup{Addr: schema.LaunchedAddress(schema.KindJobGroup, space.Addr.Name, "", name), Namespace: space.Addr.Name}
	all := []launch.Launching{{Group: &group, Launch: state.Launch{Name: name, By: "sim"}}}
	like.Resources.Slices = min(like.Resources.Slices, 4)
	if !like.Resources.Packed {
		like.Resources.Slices = 1
	}
	for _, member := range []string{"a", "b"} {
		j := like
		j.Addr = schema.LaunchedAddress(schema.KindJob, space.Addr.Name, name, member)
		c.prepareWork(&j)
		all = append(all, launch.Launching{Job: &j, Launch: state.Launch{Name: member, By: "sim"}})
	}
	return all
}

// faults opens and shuts zones.
func (c *cluster) faults() {
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

// drain lets all jobs end, while none is added.
func (c *cluster) drain() {
	for range 20_000 {
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
}
