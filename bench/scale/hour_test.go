package scale

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

var (
	hourSlices = flag.Int("hour.slices", 3, "slices of the simulation, of eight hosts each")
	hourLasts  = flag.Duration("hour.lasts", 6*time.Minute, "how long faults happen in the simulation, by its clock")
	hourWall   = flag.Duration("hour.wall", 0, "after which time by the wall clock faults end earlier; 0: they do not")
	hourSeed   = flag.Uint64("hour.seed", propertytest.Seed, "seed of the faults of the simulation; 0: a random one")
)

// The simulation is a stack in a synctest bubble: the agents' links with relays, the controllers'
// hubs, leases and steps are the product's; machines, tasks, the cloud, the bucket and the network
// between them are simulated, and fail. The oracle sees each start of a task, and at the end that
// all is as desired.

// world is all that is simulated.
type world struct {
	t       *testing.T
	objects *storetest.Memory
	wire    *wire
	cloud   *cloud
	jobs    int
	ended   sync.WaitGroup

	mu          sync.Mutex
	rand        *rand.Rand
	calm        bool                 // nothing fails any more
	cut         map[string]time.Time // until when a machine reaches nothing
	controllers map[int]*controlling
	made        int                                 // controllers
	tally       map[string]int                      // what happened
	starts      map[string]int                      // of tasks
	running     map[schema.Address]map[*machine]int // attempts that run
	failures    map[schema.Address]int              // of tasks, as simulated
	assigned    map[string]assigned                 // what was assigned last, by slice
	wrong       []string
}

const hourStack = "hourhourhourhourhourhourho"

func newWorld(t *testing.T, jobs int, seed uint64) *world {
	w := &world{
		t: t, objects: storetest.NewMemory(), jobs: jobs, rand: rand.New(rand.NewPCG(seed, 1)),
		cut: map[string]time.Time{}, controllers: map[int]*controlling{}, tally: map[string]int{}, starts: map[string]int{},
		running: map[schema.Address]map[*machine]int{}, failures: map[schema.Address]int{},
		assigned: map[string]assigned{},
	}
	w.wire = newWire(w)
	w.cloud = &cloud{world: w, slices: map[string]*machines{}}
	doc := state.Document{FormatVersion: state.FormatVersion, Lineage: hourStack, Serial: 1, Desired: schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "bench", Zones: []string{zone}}},
	}}
	for i := range jobs {
		doc.Desired.Jobs = append(doc.Desired.Jobs, job(schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)}))
	}
	data, err := state.Encode(doc)
	if err == nil {
		_, err = w.objects.Put(t.Context(), store.StateKey, data, store.Absent)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fail notes what must not happen and did; the mutex is held.
func (w *world) fail(format string, args ...any) {
	if len(w.wrong) < 10 {
		w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
		w.t.Log("wrong: " + w.wrong[len(w.wrong)-1])
	}
}

// chance is true once in so many times.
func (w *world) chance(in int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && w.rand.IntN(in) == 0
}

func (w *world) between(a, b time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a + time.Duration(w.rand.Int64N(int64(b-a)))
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what]++
}

// reaches reports whether a machine reaches others.
func (w *world) reaches(machine string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm || time.Now().After(w.cut[machine])
}

// fault is what happens to one slice or to the controllers.
type fault struct {
	name string
	mean time.Duration // between two of one slice; of controllers where each is 0
	of   func(w *world, m *machines)
}

var hourFaults = []fault{
	{"task failed", 4 * time.Minute, func(_ *world, m *machines) { m.any().failTask() }},
	{"agent killed", 3 * time.Minute, func(_ *world, m *machines) { m.any().kill(false, time.Second, 40*time.Second) }},
	{"relay killed", 5 * time.Minute, func(_ *world, m *machines) { m.hosts[0].kill(false, time.Second, 90*time.Second) }},
	{"host restarted", 10 * time.Minute, func(_ *world, m *machines) { m.any().kill(true, 20*time.Second, 2*time.Minute) }},
	{"host away for long", 2 * time.Hour, func(_ *world, m *machines) { m.any().kill(false, 20*time.Minute, time.Hour) }},
	{"host cut off", 4 * time.Minute, func(w *world, m *machines) { w.cutOff(m.any().address(), time.Second, 100*time.Second) }},
	{"stream cut", 2 * time.Minute, func(w *world, m *machines) { w.wire.cutStreams(m.any().address()) }},
	{"preempted", 20 * time.Minute, func(_ *world, m *machines) { m.preempt() }},
}

// controllerFaults are what happens to controllers, once in so long.
const controllerFaults = 100 * time.Second

// suffer lets faults of a second happen.
func (w *world) suffer() {
	for _, m := range w.cloud.ready() {
		for _, f := range hourFaults {
			if w.chance(int(f.mean / time.Second)) {
				w.count(f.name)
				f.of(w, m)
			}
		}
	}
	if !w.chance(int(controllerFaults / time.Second)) {
		return
	}
	c := w.anyController()
	switch {
	case c == nil:
	case w.chance(3):
		w.count("controller ended")
		c.end()
	case w.chance(2):
		w.count("controller cut off")
		w.cutOff(c.name, time.Second, 40*time.Second)
	default:
		w.count("controller killed")
		c.kill()
	}
}

func (w *world) cutOff(machine string, a, b time.Duration) {
	until := time.Now().Add(w.between(a, b))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[machine] = until
}

// run has faults happen for so long, and then none until all is as desired.
func (w *world) run(lasts, patience time.Duration) {
	for range 2 {
		w.startController()
	}
	began, real := time.Now(), wall()
	for *hourWall == 0 || wall()-real < *hourWall {
		time.Sleep(time.Second)
		synctest.Wait()
		w.suffer()
		synctest.Wait()
		w.inspect()
		w.inform()
		past := time.Since(began).Round(time.Second)
		if past%time.Minute == 0 {
			w.tell(past, wall()-real)
		}
		if past >= lasts {
			break
		}
	}
	w.t.Logf("faults for %s", time.Since(began).Round(time.Second))
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	w.cloud.recall()
	calm := time.Now()
	why := ""
	for time.Since(calm) < patience {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if why = w.discrepancy(); why == "" {
			break
		}
		if rested := time.Since(calm).Round(time.Second); rested%usual == 0 {
			w.t.Logf("%s after the last fault: %s", rested, why)
		}
	}
	if why != "" {
		w.t.Errorf("%s after all faults: %s", patience, why)
	}
	w.t.Logf("as desired %s after the last fault", time.Since(calm).Round(time.Second))
	w.probe()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range w.wrong {
		w.t.Error(what)
	}
	for _, what := range slices.Sorted(maps.Keys(w.tally)) {
		w.t.Logf("%7d %s", w.tally[what], what)
	}
}

// tell prints how far the simulation is.
func (w *world) tell(past, real time.Duration) {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	live, of := 0, "no controller"
	if c := w.anyController(); c != nil && c.leads {
		live, of = c.hub.Live(), c.name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	happened := ""
	for _, what := range slices.Sorted(maps.Keys(w.tally)) {
		happened += fmt.Sprintf(", %d %s", w.tally[what], what)
	}
	w.t.Logf("%s: %s by the wall clock, %s of processor time, %d MB at most; %d hosts speak to %s%s; wrong: %d",
		past, real.Round(time.Second), time.Duration(used.Utime.Nano()+used.Stime.Nano()).Round(time.Second), used.Maxrss>>10, live, of, happened, len(w.wrong))
}

// wall is the time by the wall clock, from which that of a bubble is apart.
func wall() time.Duration {
	var now syscall.Timeval
	_ = syscall.Gettimeofday(&now)
	return time.Duration(now.Nano())
}

// Times of a stack in which nothing fails: it stays as it is, and a task that fails is seen.
const (
	stays     = 10 * time.Minute
	restarted = time.Minute
	usual     = plan.MaxBackoff + time.Minute // in which it comes to rest, mostly
)

// probe sees that nothing happens where nothing fails, and that one failure of each job is
// answered by one more attempt, soon.
func (w *world) probe() {
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.tally["task started"]
	}
	before := count()
	time.Sleep(stays)
	synctest.Wait()
	if got := count(); got != before {
		w.t.Errorf("%d tasks were started while nothing failed", got-before)
	}
	for _, m := range w.cloud.ready() {
		m.any().failTask()
	}
	time.Sleep(restarted)
	synctest.Wait()
	if why := w.discrepancy(); why != "" || count() != before+w.jobs*Hosts {
		w.t.Errorf("%s after a task of each job failed, %d tasks have started, want %d: %s", restarted, count()-before, w.jobs*Hosts, why)
	}
}

// TestHour has a stack live through faults: tasks fail, hosts die, come back and are cut off,
// relays die, streams end, slices are preempted, controllers are replaced, and requests to the
// bucket fail. Nothing may be lost, leaked or doubled.
func TestHour(t *testing.T) {
	seed := *hourSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%d hosts for %s, seed %d", *hourSlices*Hosts, *hourLasts, seed)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, *hourSlices, seed)
		w.run(*hourLasts, 30*time.Minute)
		w.end()
	})
}
