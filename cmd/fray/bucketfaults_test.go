package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

var (
	faultsAll       = flag.Bool("faults.all", false, "every fault at every request, and not those that are chosen")
	faultsSeed      = flag.Uint64("faults.seed", 1, "of the order, and of the share")
	faultsScenario  = flag.String("faults.scenario", "", "only this one: apply, takeover or destroy")
	faultsOnly      = flag.String("faults.fault", "", "only this fault")
	faultsAt        = flag.String("faults.at", "", "only at this request, as \"POST lease.json #1\"")
	faultsTestbench = flag.String("faults.testbench", "", "the program storage-testbench of googleapis; \"\": fake-gcs-server")
	faultsWorkers   = flag.Int("faults.workers", 4, "stacks at once")
	faultsRepeats   = flag.Int("faults.repeats", 0, "how many requests of one kind are told apart; 0: all")
	faultsFor       = flag.Duration("faults.for", 0, "how long new points of one scenario are begun; 0: until all are tried")
	faultsShare     = flag.Float64("faults.share", 1, "of all points, drawn by the seed, that are tried with -faults.all")
)

// TestBucketFaults makes one request to the bucket fail while
// a command works: it succeeds, or reports what is wrong and succeeds when it is
// run again. Then there is nothing left to do, nothing was started twice, the lock
// is free, and a destroy leaves nothing.
//
// By itself it tries the points of [chosenFaults], against the program as it is
// released. With -faults.all it tries every fault at every request that a run
// without faults makes, against one whose lease and patience are shorter.
func TestBucketFaults(t *testing.T) {
	t.Parallel()
	needsFray(t)
	service := newFaultService(t)
	program := fray
	if *faultsAll {
		program = hastyFray(t)
	}
	for _, scenario := range faultScenarios() {
		if *faultsScenario != "" && *faultsScenario != scenario.name {
			continue
		}
		t.Run(scenario.name, func(t *testing.T) {
			points := chosenFaults(scenario.name)
			if *faultsAll {
				points = allFaults(t, service(t), scenario, program)
			}
			tryFaults(t, points, func(p faultPoint) faultOutcome {
				stack, err := newFaultStack(t, service(t), program)
				if err != nil {
					return faultOutcome{err: err}
				}
				defer stack.close(t)
				return stack.try(t, scenario, p)
			})
		})
	}
}

// faultPoint is a fault and the request to which it happens.
type faultPoint struct {
	at    bucketRequest
	fault bucketFault
}

// chosenFaults are those that every run of the tests tries: one of each kind,
// where they did harm once or would do the most.
func chosenFaults(scenario string) []faultPoint {
	lease, doc := bucketRequest{"POST lease.json", 1}, bucketRequest{"POST state.json", 1}
	return map[string][]faultPoint{
		"apply": {
			{lease, resetAfter}, {doc, conflicting}, {bucketRequest{"POST state.json", 2}, forbidden},
			{bucketRequest{"GET state.json", 1}, truncated}, {bucketRequest{"POST assign/two-N-N.json", 1}, duplicated},
		},
		"takeover": {{lease, conflicting}, {doc, unavailable}, {bucketRequest{"GET lease.json", 1}, unknownUser}},
		"destroy":  {{lease, resetBefore}, {doc, throttled}, {bucketRequest{"GET lease.json", 1}, tooLate}},
	}[scenario]
}

// allFaults runs a scenario without a fault, and returns every fault at every
// request that it makes, or the share of them that is asked for.
func allFaults(t *testing.T, service http.Handler, scenario faultScenario, program string) []faultPoint {
	t.Helper()
	clean, err := newFaultStack(t, service, program)
	if err != nil {
		t.Fatal(err)
	}
	defer clean.close(t)
	if got := clean.try(t, scenario, faultPoint{}); got.err != nil {
		t.Fatalf("without a fault: %v", got.err)
	}
	var points []faultPoint
	for _, r := range clean.acted {
		for _, f := range bucketFaults() {
			if (*faultsRepeats == 0 || r.nth <= *faultsRepeats) && (*faultsOnly == "" || *faultsOnly == string(f)) && (*faultsAt == "" || *faultsAt == r.String()) {
				points = append(points, faultPoint{r, f})
			}
		}
	}
	rng := rand.New(rand.NewPCG(*faultsSeed, 0))
	rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	share := points[:int(float64(len(points))*(*faultsShare))]
	t.Logf("%s: %d requests; %d of %d points, seed %d", scenario.name, len(clean.acted), len(share), len(points), *faultsSeed)
	counts := map[string]int{}
	for _, r := range clean.acted {
		counts[r.kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%s: %d of %s", scenario.name, counts[kind], kind)
	}
	return share
}

// faultOutcome is what came of a point.
type faultOutcome struct {
	happened bool // the request was made, and the fault befell it
	again    bool // the command failed, and succeeded when it was run again
	err      error
}

// tally counts outcomes.
type tally struct{ tried, happened, again, wrong int }

func (c *tally) add(o faultOutcome) {
	c.tried++
	if o.happened {
		c.happened++
	}
	if o.again {
		c.again++
	}
	if o.err != nil {
		c.wrong++
	}
}

// tryFaults tries points, several at once, and reports them by faults.
func tryFaults(t *testing.T, points []faultPoint, try func(faultPoint) faultOutcome) {
	work := make(chan faultPoint)
	var mu sync.Mutex
	byFault := map[bucketFault]*tally{}
	var all tally
	var workers sync.WaitGroup
	for range *faultsWorkers {
		workers.Go(func() {
			for p := range work {
				got := try(p)
				switch {
				case got.err != nil:
					t.Errorf("%s: %s at %s: %v", t.Name(), p.fault, p.at, got.err)
				case !got.happened && !*faultsAll:
					t.Errorf("%s: %s at %s did not happen", t.Name(), p.fault, p.at)
				}
				mu.Lock()
				if byFault[p.fault] == nil {
					byFault[p.fault] = &tally{}
				}
				byFault[p.fault].add(got)
				all.add(got)
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	for i, p := range points {
		if *faultsFor > 0 && time.Since(began) > *faultsFor {
			t.Logf("the time is over after %d of %d points", i, len(points))
			break
		}
		work <- p
		if i%50 == 49 {
			t.Logf("%d of %d points begun after %v", i+1, len(points), time.Since(began).Round(time.Second))
		}
	}
	close(work)
	workers.Wait()
	for _, f := range bucketFaults() {
		if c := byFault[f]; c != nil {
			t.Logf("%s: %d tried, %d happened, %d commands failed and succeeded again, %d wrong", f, c.tried, c.happened, c.again, c.wrong)
		}
	}
	t.Logf("all: %d tried, %d happened, %d commands failed and succeeded again, %d wrong", all.tried, all.happened, all.again, all.wrong)
	if all.happened == 0 {
		t.Error("no fault happened")
	}
}

// newFaultService returns what gives an emulated service with a bucket to each
// stack: one of its own, or the one testbench that all share.
func newFaultService(t *testing.T) func(t *testing.T) http.Handler {
	t.Helper()
	if *faultsTestbench != "" {
		service := startTestbench(t, *faultsTestbench)
		return func(*testing.T) http.Handler { return service }
	}
	return func(t *testing.T) http.Handler {
		fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
		if err != nil {
			t.Error(err)
			return http.NotFoundHandler()
		}
		fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: emulatedBucket})
		return fake.HTTPHandler()
	}
}

// hastyRig makes a program for which less time passes: its lease, what a hanging
// request is given, what is tried again and the pace of writes are shorter, in
// about the same proportions.
var hastyRig = []splice{
	{stackSource, "store.LeaseConfig{\n\t\tCommand:", "store.LeaseConfig{\n\t\tTTL: 8 * time.Second, Command:"},
	{leaseSource, "c.Command = CommandLine()", "c.Command, c.TTL = CommandLine(), 8*time.Second"},
	{filepath.Join("..", "..", "providers", "gcp", "bucket.go"), "interval: time.Second, stall: 20 * time.Second, backoff: 250 * time.Millisecond, patience: time.Minute",
		"interval: 50 * time.Millisecond, stall: 10 * time.Second, backoff: 100 * time.Millisecond, patience: 30 * time.Second"},
}

var hasty = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(fray), "hasty", "fray")
	return path, buildRigged(path, nil, hastyRig)
})

// hastyFray is a program with hastyRig, built once.
func hastyFray(t *testing.T) string {
	t.Helper()
	path, err := hasty()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// startTestbench runs googleapis/storage-testbench. It takes any text for yes:
// what asks for no versions is left out on the way.
func startTestbench(t *testing.T, program string) http.Handler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--port", strconv.Itoa(port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	target := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	err = within(patience, func() error {
		reply, err := http.Post(target.String()+"/storage/v1/b?project=p", "application/json", strings.NewReader(`{"name":"`+emulatedBucket+`"}`))
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			return fmt.Errorf("create the bucket: %s", reply.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		query := r.Out.URL.Query()
		if query.Get("versions") == "false" {
			query.Del("versions")
			r.Out.URL.RawQuery = query.Encode()
		}
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w, nil) }}
}
