package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// What is measured of slices on Google Cloud.
const (
	cloudSlices    = 2000
	cloudPreempted = 1000
	cloudZone      = "us-west4-a"
	cloudProject   = "bench"
	cloudPage      = 500  // slices in a page of a list
	cloudLimit     = 1000 // creations a minute: the real limit would take a quarter of an hour
	idleSteps      = 20
)

// gcps measures steps over slices of an emulated cloud, which is a process of its
// own and takes 0.3 to 2 s for every call: what is measured is fray's own part.
func (b *bench) gcps() error {
	c, r, err := b.one(oneCloud, strconv.Itoa(cloudSlices), "")
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("step over %d slices on an emulated cloud, nothing to do", cloudSlices),
		ms(r.CPU)+" of CPU, the list included", "< 100 ms", fmt.Sprintf("the longest of %d such steps took %s, a call to the cloud 0.3 to 2 s", idleSteps, ms(r.Took)))
	b.row(fmt.Sprintf("list %d slices, as fray plan does", cloudSlices),
		fmt.Sprintf("%d calls to the cloud", r.Calls), fmt.Sprintf("%d: no more than pages", r.Pages), fmt.Sprintf("%d slices a page", cloudPage))
	b.row(fmt.Sprintf("%d of them preempted at once, until all are asked for again", cloudPreempted),
		fmt.Sprintf("%s, no step longer than %s", sec(r.Again), ms(r.Longest)), "steps < 1 s",
		fmt.Sprintf("the limit of %d creations a minute alone: %s; %s of CPU in all", cloudLimit, sec(cloudPreempted*time.Minute/cloudLimit), sec(c.cpu)))
	return nil
}

// cloudOf is the provider with an agent on every slice that it makes.
type cloudOf struct {
	*gcp.Provider
	world *world
	mu    sync.Mutex
	asked map[string]int
}

// Create makes a slice whose host reports at once.
func (c *cloudOf) Create(ctx context.Context, spec schema.SliceSpec) error {
	if err := c.Provider.Create(ctx, spec); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[spec.Name]++
	defer c.world.enter()()
	return c.world.report(freshReport(spec.Name))
}

// measureCloud is what [bench.gcps] shows, with the emulator in a child.
func measureCloud(ctx context.Context, n int) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	server := exec.CommandContext(ctx, self, oneArg, oneServe, "0", "")
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return result{}, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := server.Start(); err != nil {
		return result{}, err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	var r result
	if err == nil {
		r, err = stepOverCloud(ctx, strings.TrimSpace(url), n)
	}
	return r, errors.Join(err, in.Close(), server.Wait())
}

// stepOverCloud brings n slices up, and measures.
func stepOverCloud(ctx context.Context, url string, n int) (result, error) {
	p, err := gcp.New(ctx, gcp.Config{Project: cloudProject, Endpoint: url, CreatesPerMinute: 1_000_000})
	if err != nil {
		return result{}, err
	}
	defer func() { _ = p.Close() }()
	w := newWorld(0)
	c := &cloudOf{Provider: p, world: w, asked: map[string]int{}}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go w.beat(ctx)
	s, err := cloudStepper(ctx, w, c, n)
	if err != nil {
		return result{}, err
	}
	if _, err := settle(ctx, s, apply.Scope{All: true}); err != nil {
		return result{}, err
	}
	var r result
	if err := idleOverCloud(ctx, s, &r); err != nil {
		return r, err
	}
	before, err := asked(ctx, url, "count")
	if err != nil {
		return r, err
	}
	if _, err := p.Inventory(ctx, s.Document().Stack()); err != nil {
		return r, err
	}
	after, err := asked(ctx, url, "count")
	if err != nil {
		return r, err
	}
	r.Calls, r.Pages = after-before, (n+cloudPage-1)/cloudPage+otherLists
	return r, preempted(ctx, s, w, c, url, &r)
}

// beatEvery is how often every agent reports a heartbeat; silence of 45 s is a loss.
const beatEvery = 15 * time.Second

// beat is the agents' heartbeats until ctx ends.
func (w *world) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.beatOnce()
		}
	}
}

func (w *world) beatOnce() {
	defer w.enter()()
	for _, key := range w.keys {
		w.beatHost(key)
	}
}

// beatHost has one host report, if the key is a host's.
func (w *world) beatHost(key string) {
	var r state.HostReport
	if !strings.HasPrefix(key, store.HostsPrefix) || json.Unmarshal(w.kept.Objects[key].Data, &r) != nil {
		return
	}
	r.Seq++
	if data, err := json.Marshal(r); err == nil {
		_, _ = w.put(key, data, store.Any) // the key is there: nothing moves
	}
}

// otherLists are those that have one page: queued resources, machines and groups.
const otherLists = 3

func cloudStepper(ctx context.Context, w *world, c *cloudOf, n int) (*apply.Stepper, error) {
	desired := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: cloudProject, Zones: []string{cloudZone}}}}
	for i := range n {
		desired.Jobs = append(desired.Jobs, schema.Job{
			Addr:      schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)},
			Namespace: "work", Command: []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderGCP, TPU: "v5litepod-8", Slices: 1, Preemptible: true},
			Retries:   schema.Retries{Preemption: schema.Unlimited},
		})
	}
	s, err := apply.New(ctx, cloudConfig(w, c))
	if err != nil {
		return nil, err
	}
	return s, s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired}))
}

func cloudConfig(w *world, c *cloudOf) apply.Config {
	cfg := stepperOn(w, c)
	cfg.Providers = map[schema.ProviderName]providers.Provider{schema.ProviderGCP: c}
	cfg.Parallelism = 256
	return cfg
}

// idleOverCloud steps while nothing is to be done.
func idleOverCloud(ctx context.Context, s *apply.Stepper, r *result) error {
	cpu := processTime()
	for range idleSteps {
		began := time.Now()
		if _, err := s.Step(ctx); err != nil {
			return err
		}
		r.Took = max(r.Took, time.Since(began))
	}
	r.CPU = (processTime() - cpu) / idleSteps
	return nil
}

// preempted has slices taken away, and steps until all were asked for again, by a
// provider that keeps to a limit.
func preempted(ctx context.Context, s *apply.Stepper, w *world, before *cloudOf, url string, r *result) error {
	s.Drain(ctx)
	if err := errors.Join(s.Save(ctx), before.Close(), w.age(ctx, slicesAge)); err != nil {
		return err
	}
	p, err := gcp.New(ctx, gcp.Config{Project: cloudProject, Endpoint: url, CreatesPerMinute: cloudLimit})
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	c := &cloudOf{Provider: p, world: w, asked: map[string]int{}}
	cfg := cloudConfig(w, c)
	cfg.Epoch = 3
	if s, err = apply.New(ctx, cfg); err != nil {
		return err
	}
	if _, err := s.Step(ctx); err != nil { // the first observation of a process waits for its list
		return err
	}
	if _, err := asked(ctx, url, "preempt"); err != nil {
		return err
	}
	for start := time.Now(); ; {
		began := time.Now()
		next, err := s.Step(ctx)
		if err != nil {
			return err
		}
		r.Longest = max(r.Longest, time.Since(began))
		c.mu.Lock()
		done := len(c.asked) >= cloudPreempted
		c.mu.Unlock()
		if r.Again = time.Since(start); done {
			return nil
		}
		s.Wait(ctx, next)
	}
}

// slicesAge is more than a slice must live for its end to say nothing of its
// zone: those that die young shut it for a while.
const slicesAge = 24 * time.Hour

// age makes all slices of the state older by d.
func (w *world) age(ctx context.Context, d time.Duration) error {
	by := apply.Rewriter{Store: w, Epoch: 2, Valid: func() error { return nil }}
	_, err := by.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
		next := doc.Clone()
		for name, s := range doc.Slices {
			older := *s
			older.PendingSince, older.UpAt = s.PendingSince.Add(-d), s.UpAt.Add(-d)
			next.Slices[name] = &older
		}
		return next, nil
	})
	return err
}

// processTime is the processor time of this process so far.
func processTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// asked asks the server for a number.
func asked(ctx context.Context, url, what string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/bench/"+what, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var n int
	return n, json.NewDecoder(resp.Body).Decode(&n)
}

// serveCloud serves an emulated cloud until standard input ends, and prints its address.
func serveCloud(ctx context.Context, in io.Reader, out io.Writer) error {
	e := emulator.New(emulator.Config{Cloud: cloud.Config{Project: cloudProject, Scenario: cloud.Scenario{
		CreateLimit: 1_000_000, PageSize: cloudPage,
		API:   cloud.API{Latency: cloud.Range{Min: 300 * time.Millisecond, Max: 2 * time.Second}},
		Zones: []cloud.Zone{{Name: cloudZone, Capacity: map[string]int{"v5litepod": 1 << 30}}},
	}}})
	counted := &counter{cloud: e.Cloud(), next: e.Handler()}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: counted, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	fmt.Fprintln(out, "http://"+l.Addr().String())
	_, err = io.Copy(io.Discard, in)
	err = errors.Join(err, server.Close())
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// counter counts calls.
type counter struct {
	cloud *cloud.Cloud
	next  http.Handler
	mu    sync.Mutex
	calls int
}

// ServeHTTP answers below /bench/ itself.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/bench/count":
		c.mu.Lock()
		defer c.mu.Unlock()
		fmt.Fprintln(w, c.calls)
		return
	case "/bench/preempt":
		n := 0
		for _, g := range c.cloud.Groups(cloudProject, cloud.KindNode, "") {
			if n < cloudPreempted && c.cloud.Preempt(g.Key, false) == nil {
				n++
			}
		}
		fmt.Fprintln(w, n)
		return
	}
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	c.next.ServeHTTP(w, r)
}
