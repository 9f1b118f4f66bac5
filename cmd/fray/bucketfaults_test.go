package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

var (
	faultsAll       = flag.Bool("faults.all", false, "every fault at every request, and not a sample")
	faultsPoints    = flag.Int("faults.points", 3, "how many points of each scenario are tried where not all are")
	faultsSeed      = flag.Uint64("faults.seed", 0, "of the sample; 0: another one each time")
	faultsScenario  = flag.String("faults.scenario", "", "only this one: apply, takeover or destroy")
	faultsOnly      = flag.String("faults.fault", "", "only this fault")
	faultsTestbench = flag.String("faults.testbench", "", "the program storage-testbench of googleapis; \"\": fake-gcs-server")
	faultsWorkers   = flag.Int("faults.workers", 2, "stacks at once")
)

// faultWorkload are a job that runs on and one that ends, each of which tells
// when it starts.
const faultWorkload = `
job "one" {
  command = ["sh", "-c", "echo $$$$ >> %[1]s/one; exec sleep 1000"]
}
job "two" {
  command = ["sh", "-c", "echo $$$$ >> %[1]s/two"]
}
`

// TestBucketFaults lets one thing go wrong with one request to the bucket while
// a command works: it succeeds, or says what is wrong and succeeds when it is
// run again. Then the state is right, nothing was started twice, the lock is
// free, and a destroy leaves nothing.
func TestBucketFaults(t *testing.T) {
	needsFray(t)
	seed := *faultsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	service := faultService(t)
	for _, scenario := range faultScenarios() {
		if *faultsScenario != "" && *faultsScenario != scenario.name {
			continue
		}
		t.Run(scenario.name, func(t *testing.T) {
			clean := newFaultStack(t, service)
			if err := clean.try(t, scenario, bucketRequest{}, ""); err != nil {
				t.Fatalf("without a fault: %v", err)
			}
			points := faultPoints(clean.acted)
			total := len(points)
			if !*faultsAll {
				rng := rand.New(rand.NewPCG(seed, 0))
				rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
				points = points[:min(*faultsPoints, len(points))]
			}
			t.Logf("%s: %d requests, of which %d are told apart; %d of %d points, seed %d",
				scenario.name, len(clean.acted), total/len(bucketFaults()), len(points), total, seed)
			work := make(chan faultPoint)
			var tried, hit sync.Map
			var workers sync.WaitGroup
			for range *faultsWorkers {
				workers.Go(func() {
					for p := range work {
						stack := newFaultStack(t, service)
						err := stack.try(t, scenario, p.at, p.fault)
						if err != nil {
							t.Errorf("%s: %s at %s: %v", scenario.name, p.fault, p.at, err)
						}
						tried.Store(p, true)
						if stack.happened {
							hit.Store(p, true)
						}
						endProcesses(stack.dir)
					}
				})
			}
			for _, p := range points {
				work <- p
			}
			close(work)
			workers.Wait()
			t.Logf("%s: %d points tried, at %d of them the fault happened", scenario.name, sizeOf(&tried), sizeOf(&hit))
			if sizeOf(&hit) == 0 {
				t.Error("no fault happened")
			}
		})
	}
}

func sizeOf(m *sync.Map) int {
	n := 0
	m.Range(func(any, any) bool { n++; return true })
	return n
}

type faultPoint struct {
	at    bucketRequest
	fault bucketFault
}

// repeats is how many requests of one kind are told apart: those that agents
// and leases repeat while they live are all the same.
const repeats = 3

func faultPoints(seen []bucketRequest) []faultPoint {
	var points []faultPoint
	for _, r := range seen {
		for _, f := range bucketFaults() {
			if r.nth <= repeats && (*faultsOnly == "" || *faultsOnly == string(f)) {
				points = append(points, faultPoint{r, f})
			}
		}
	}
	return points
}

// faultService is an emulated service with a bucket.
func faultService(t *testing.T) http.Handler {
	t.Helper()
	if *faultsTestbench != "" {
		return startTestbench(t, *faultsTestbench)
	}
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Stop)
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: emulatedBucket})
	return fake.HTTPHandler()
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

// faultStack is one stack in the bucket, and what came between.
type faultStack struct {
	*proofStack
	between  *faultyBucket
	direct   store.Store // past the faults
	acted    []bucketRequest
	happened bool
}

func newFaultStack(t *testing.T, service http.Handler) *faultStack {
	t.Helper()
	s := &faultStack{proofStack: newProofStack(t, nil)}
	s.between = &faultyBucket{service: service, prefix: s.prefix()}
	s.bucket = &emulator{Server: httptest.NewServer(s.between)}
	past := httptest.NewServer(service)
	s.env = s.bucket.environ()
	t.Cleanup(func() {
		endProcesses(s.dir)
		for _, server := range []*httptest.Server{s.bucket.Server, past} {
			server.CloseClientConnections()
			server.Close()
		}
	})
	var err error
	s.direct, err = gcp.OpenBucket(t.Context(), gcp.BucketConfig{
		Bucket: emulatedBucket, Prefix: s.prefix(), Endpoint: past.URL + "/storage/v1/", WriteInterval: time.Millisecond, HTTPClient: &http.Client{},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, fmt.Sprintf(faultWorkload, s.dir))
	return s
}

// faultScenario is something that a fault falls into.
type faultScenario struct {
	name    string
	prepare func(*faultStack, *testing.T) error
	act     func(*faultStack, *testing.T) (ending, error)
}

func faultScenarios() []faultScenario {
	apply := func(s *faultStack, t *testing.T) (ending, error) { return s.fray(t, "apply", "--auto-approve") }
	applied := func(s *faultStack, t *testing.T) error { return well(apply(s, t)) }
	return []faultScenario{
		{name: "apply", prepare: func(*faultStack, *testing.T) error { return nil }, act: apply},
		{name: "takeover", prepare: func(s *faultStack, t *testing.T) error {
			if err := applied(s, t); err != nil {
				return err
			}
			first, err := s.watch(t)
			if err != nil {
				return err
			}
			err = errors.Join(s.leads(t, first), first.cmd.Process.Kill())
			<-first.gone
			return err
		}, act: (*faultStack).takeover},
		{name: "destroy", prepare: applied, act: func(s *faultStack, t *testing.T) (ending, error) {
			return s.fray(t, "destroy", "--auto-approve")
		}},
	}
}

// fray runs a command, which may take as long as a fault that is waited out.
func (s *faultStack) fray(t *testing.T, args ...string) (ending, error) {
	return s.run(t, nil, args...)
}

// well is the error of a command that has to end well.
func well(got ending, err error) error {
	if err == nil && got.code != 0 {
		err = fmt.Errorf("%v", got)
	}
	return err
}

// watching is a running fray watch.
type watching struct {
	cmd  *exec.Cmd
	out  bytes.Buffer  // to be read once it has gone
	gone chan struct{} // closed
}

func (s *faultStack) watch(t *testing.T) (*watching, error) {
	w := &watching{cmd: s.command(t, nil, "watch", "--http", "off"), gone: make(chan struct{})}
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.out
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.cmd.Wait() // it is killed, or looked at
		close(w.gone)
	}()
	return w, nil
}

// leads waits until a watch has the lease and has written the state under it, or
// has ended.
func (s *faultStack) leads(t *testing.T, w *watching) error {
	return within(proofPatience, func() error {
		select {
		case <-w.gone:
			return nil // told by its ending
		default:
		}
		lease, err := store.ReadLease(t.Context(), s.direct)
		if err != nil {
			return err
		}
		doc, err := s.document(t)
		if err != nil {
			return err
		}
		if lease.PID != w.cmd.Process.Pid || lease.Released || doc.Epoch != lease.Epoch {
			return fmt.Errorf("the lease is that of pid %d, epoch %d, the state's epoch is %d; want pid %d to lead", lease.PID, lease.Epoch, doc.Epoch, w.cmd.Process.Pid)
		}
		return nil
	})
}

func (s *faultStack) document(t *testing.T) (state.Document, error) {
	object, err := s.direct.Get(t.Context(), store.StateKey)
	if err != nil {
		return state.Document{}, err
	}
	return state.Decode(object.Data)
}

// takeover starts a watch after one that was killed, lets it lead for some
// requests, and ends it.
func (s *faultStack) takeover(t *testing.T) (ending, error) {
	w, err := s.watch(t)
	if err != nil {
		return ending{}, err
	}
	if err := s.leads(t, w); err != nil {
		return ending{}, err
	}
	led, _ := s.between.requests()
	if err := within(proofPatience, func() error { return s.tended(t, w, len(led)) }); err != nil {
		return ending{}, err
	}
	signalled := w.cmd.Process.Signal(syscall.SIGINT)
	if signalled != nil && !errors.Is(signalled, os.ErrProcessDone) {
		return ending{}, signalled
	}
	select {
	case <-w.gone:
	case <-time.After(proofPatience):
		return ending{}, errors.New("the watch does not end")
	}
	return ending{stderr: w.out.String(), code: w.cmd.ProcessState.ExitCode()}, nil
}

// tended is nil once a watch that leads has asked for more, job.two has ended
// and has given its slice back; or once the watch has ended.
func (s *faultStack) tended(t *testing.T, w *watching, requests int) error {
	select {
	case <-w.gone:
		return nil
	default:
	}
	if now, _ := s.between.requests(); len(now) < requests+60 {
		return errors.New("the watch that leads asks for nothing")
	}
	doc, err := s.document(t)
	if err != nil {
		return err
	}
	if len(doc.Slices) != 1 {
		return fmt.Errorf("%d slices are left, want that of job.one", len(doc.Slices))
	}
	return nil
}

// try carries a scenario out with a fault and holds what must be true then.
func (s *faultStack) try(t *testing.T, scenario faultScenario, at bucketRequest, fault bucketFault) error {
	if err := scenario.prepare(s, t); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	s.between.record(at, fault)
	began := time.Now()
	got, err := scenario.act(s, t)
	s.acted, s.happened = s.between.requests()
	s.between.record(bucketRequest{}, "")
	if err != nil {
		return fmt.Errorf("after %v: %w", time.Since(began), err)
	}
	if got.code != 0 {
		if fault == "" || strings.TrimSpace(got.stderr) == "" {
			return fmt.Errorf("it fails without saying why: %v", got)
		}
		t.Logf("%s: %s at %s: exit code %d, then again: %s", scenario.name, fault, at, got.code, lastLine(got.stderr))
		again, err := scenario.act(s, t)
		if err := well(again, err); err != nil {
			return fmt.Errorf("the next run fails as well: %w\nthe first: %v", err, got)
		}
	}
	if scenario.name != "destroy" {
		if err := s.settled(t); err != nil {
			return err
		}
		if err := well(s.fray(t, "destroy", "--auto-approve")); err != nil {
			return fmt.Errorf("destroy: %w", err)
		}
	}
	return s.nothingLeft(t)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// settled holds that what was asked for is there, and that nothing is left to do.
func (s *faultStack) settled(t *testing.T) error {
	if err := within(proofPatience, func() error { return s.startedOnce("one", "two") }); err != nil {
		return err
	}
	if err := s.planIsEmpty(t); err != nil {
		return err
	}
	doc, err := s.document(t)
	if err != nil {
		return err
	}
	if len(doc.Jobs) != 2 {
		return fmt.Errorf("the state has %d jobs, want 2", len(doc.Jobs))
	}
	return nil
}

// planIsEmpty holds that there is nothing to do. That job.two has ended may be
// seen only now, and its slice be given back by an apply that changes nothing.
func (s *faultStack) planIsEmpty(t *testing.T) error {
	return within(proofPatience, func() error {
		got, err := s.fray(t, "plan", "--detailed-exitcode")
		switch {
		case err != nil || got.code == 0:
			return err
		case !strings.Contains(got.stdout, "No changes asked for."):
			return fmt.Errorf("the plan is not empty: %v", got)
		}
		if err := well(s.fray(t, "apply", "--auto-approve")); err != nil {
			return fmt.Errorf("apply what is begun: %w", err)
		}
		return fmt.Errorf("what was begun is not done: %v", got)
	})
}

// startedOnce holds that jobs started once, by what they wrote.
func (s *faultStack) startedOnce(jobs ...string) error {
	for _, name := range jobs {
		lines, err := s.lines(name)
		if err != nil {
			return err
		}
		if len(lines) != 1 {
			return fmt.Errorf("job.%s was started %d times, want once", name, len(lines))
		}
	}
	return nil
}

// nothingLeft holds that a destroyed stack has no jobs, no processes and no lock.
func (s *faultStack) nothingLeft(t *testing.T) error {
	if err := s.startedOnce("one", "two"); err != nil {
		return err
	}
	doc, err := s.document(t)
	if err != nil {
		return err
	}
	if len(doc.Jobs)+len(doc.Slices) > 0 {
		return fmt.Errorf("the state has %d jobs and %d slices after destroy", len(doc.Jobs), len(doc.Slices))
	}
	lease, err := store.ReadLease(t.Context(), s.direct)
	if err != nil {
		return err
	}
	if !lease.Released && time.Now().Before(lease.ExpiresAt) && !strings.Contains(lease.Command, "destroy") {
		data, _ := json.Marshal(lease)
		return fmt.Errorf("the lease is not free: %s", data)
	}
	return within(proofPatience, func() error {
		if left := processes(s.dir); len(left) > 0 {
			return fmt.Errorf("%d processes are left: %v", len(left), left)
		}
		return nil
	})
}
