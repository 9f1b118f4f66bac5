package incremental

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var (
	clusterSeed   = flag.Uint64("cluster.seed", propertytest.Seed, "the seed; 0: a random one")
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

// TestClusterSimulation runs a cluster through a month, or what the flags say, of
// the load that cluster_load_test.go describes, with an eye on all that must never
// happen.
func TestClusterSimulation(t *testing.T) { simulate(t, seedOf(t)) }

// TestClusterSimulationOfSeeds replays simulations that failed once.
func TestClusterSimulationOfSeeds(t *testing.T) {
	for name, seed := range map[string]uint64{
		"a namespace with few chips holds most cores": 5157679332823348055,
	} {
		t.Run(name, func(t *testing.T) { simulate(t, seed) })
	}
}

func simulate(t *testing.T, seed uint64) {
	c := newCluster(t, seed)
	c.declare(clusterOf(c.dice, *clusterSlices, *clusterSpaces))
	c.pace, c.life = *clusterPace, 30*time.Hour
	first, began, said := c.now, time.Now(), time.Now()
	compared := time.Duration(0)
	for elapsed := time.Duration(0); elapsed < *clusterFor; elapsed = c.now.Sub(first) {
		c.faults()
		c.arrivals(c.burst(elapsed, *clusterFor))
		c.forget()
		c.step()
		if c.weigh(); elapsed-compared >= *clusterFor/3-c.pace {
			c.fair()
			compared = elapsed
		}
		if time.Since(said) > time.Minute {
			c.say("%s", c.tally)
			said = time.Now()
		}
	}
	c.drain()
	c.say("%s, in %s", c.tally, time.Since(began).Round(time.Second))
	if y := &c.tally; y.yields == 0 || y.lost == 0 || y.refused == 0 || y.failed == 0 || y.reserved == 0 {
		t.Errorf("%s: something did not happen; the test shows little", y)
	}
}

// TestClusterShares: while all namespaces want more than there is, each has what
// it is due, within 5%, on average over time.
func TestClusterShares(t *testing.T) {
	seed := seedOf(t)
	c := newCluster(t, seed)
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
	c.declare(desired)
	c.pace = *clusterPace
	held, waiting := make([]float64, spaces), make([]int, spaces)
	steps := max(300, int(*clusterFor/c.pace/4))
	for step := range steps {
		for i := range waiting {
			for ; waiting[i] < 5; waiting[i]++ {
				name := fmt.Sprintf("j%d", c.tally.launched)
				j := newJob(name, inSpace(desired.Namespaces[i].Addr.Name), onTPU("v5litepod-8"))
				j.Addr = schema.LaunchedAddress(schema.KindJob, j.Namespace, "", name)
				c.work[j.Addr] = c.minutes(10, 50+10*(i%4)) // who runs for longer is due no more
				c.launch([]launch.Launching{{Job: &j, Launch: state.Launch{Name: name}}})
			}
		}
		c.forget()
		c.step()
		clear(waiting)
		for _, j := range c.doc.Jobs {
			i := c.index[j.Spec.Namespace]
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
