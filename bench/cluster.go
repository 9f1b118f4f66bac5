package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// Sizes of what is measured of a controller.
const (
	stepTasks     = 10_000
	stepRounds    = 80
	steadySlices  = 1_000
	steadyTime    = 30 * time.Second
	launches      = 60
	hostBeat      = 2 * time.Second // of agents
	quietStep     = 250 * time.Millisecond
	failoverLimit = time.Minute
)

// clusterBench measures the cluster API and who leads.
type clusterBench struct{ *bench }

// clusters measures `fray watch` as a controller.
func (b clusterBench) clusters() error {
	_, r, err := b.one(oneStep, strconv.Itoa(stepTasks), "")
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("step over %d running tasks, with their heartbeats", stepTasks), ms(r.CPU)+" of CPU", "< 50 ms",
		fmt.Sprintf("a new process's first list of all of them: %s", ms(r.Took)))
	_, r, err = b.one(oneSteady, strconv.Itoa(steadySlices), "")
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("watch over %d slices with nothing to do, %s", steadySlices, steadyTime),
		fmt.Sprintf("%.2f%% of a core", 100*float64(r.CPU)/float64(r.Took)), "< 2%", fmt.Sprintf("%d steps; what the simulated hosts and store cost is left out", r.Steps))
	return b.metadata()
}

// metadata measures the registry of actors through the service.
func (b clusterBench) metadata() error {
	dir, err := b.scratch("metadata", "")
	if err != nil {
		return err
	}
	s, err := store.CreateDir(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	load := metadataLoad{Actors: 1000, Callers: 64, Lookups: 100_000, Watchers: 1000, Changes: 20}
	speed, err := measureMetadata(b.ctx, s, load)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("lookups of %d actors, %d at once", load.Actors, load.Callers), fmt.Sprintf("%.0f a second", speed.LookupsPerSecond), "10,000",
		fmt.Sprintf("p99 %s; client and server on the same cores, TLS and tokens included", ms(speed.LookupP99)))
	b.row(fmt.Sprintf("a registration, until the last of %d watchers has it", load.Watchers), ms(speed.Change), "1,000 watchers", "median of 20")
	return nil
}

// stepOver measures a step over n running tasks. In the time between two steps
// an eighth of the hosts report a heartbeat, as agents do every two seconds.
func stepOver(ctx context.Context, n int) (result, error) {
	w := newWorld(time.Second)
	s, err := apply.New(ctx, stepperOn(w, capacity{w}))
	if err != nil {
		return result{}, err
	}
	if err := bringAbout(ctx, s, forEach(n)); err != nil {
		return result{}, err
	}
	if err := s.Save(ctx); err != nil {
		return result{}, err
	}
	var r result
	cfg := stepperOn(w, capacity{w})
	cfg.Epoch = 2
	if s, err = apply.New(ctx, cfg); err != nil {
		return r, err
	}
	first := processTime()
	if _, err := s.Step(ctx); err != nil {
		return r, err
	}
	r.Took = processTime() - first
	share := int(hostBeat / quietStep)
	var spent time.Duration
	for round := range stepRounds {
		w.beatSome(round%share, share)
		before, cpu := w.spent(), processTime()
		if _, err := s.Step(ctx); err != nil {
			return r, err
		}
		spent += processTime() - cpu - (w.spent() - before)
	}
	r.CPU = spent / stepRounds
	return r, nil
}

// beatSome has every share-th host report, from the first on.
func (w *world) beatSome(first, share int) {
	defer w.enter()()
	for i := first; i < len(w.keys); i += share {
		w.beatHost(w.keys[i])
	}
}

// bringAbout accepts a configuration and steps until nothing is left to do.
func bringAbout(ctx context.Context, s *apply.Stepper, desired schema.Desired) error {
	if err := s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		return err
	}
	for {
		next, err := s.Step(ctx)
		if err != nil {
			return err
		}
		if p := s.Last(); s.Idle() && len(p.Actions)+len(p.Pending) == 0 {
			return nil
		}
		s.Wait(ctx, next)
	}
}

func forEach(n int) schema.Desired {
	var desired schema.Desired
	for i := range n {
		desired.Jobs = append(desired.Jobs, schema.Job{
			Addr:      schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)},
			Namespace: "work", Command: []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		})
	}
	return desired
}

// steadyWatch measures what a controller uses while nothing is to be done.
func steadyWatch(ctx context.Context, n int) (result, error) {
	w := newWorld(0)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := apply.New(ctx, stepperOn(w, capacity{w}))
	if err != nil {
		return result{}, err
	}
	if err := errors.Join(bringAbout(ctx, s, forEach(n)), s.Save(ctx)); err != nil {
		return result{}, err
	}
	var r result
	steps := make(chan struct{}, 1<<20)
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Config{
			Store: w, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: capacity{w}}, Version: "bench", Command: "bench",
			Log: slog.New(slog.DiscardHandler), Looked: func(apply.Timing) { steps <- struct{}{} },
		})
	}()
	sleep.For(ctx, 3*time.Second)
	before, cpu, began, stepped := w.spent(), processTime(), time.Now(), len(steps)
	for round := 0; time.Since(began) < steadyTime; round++ {
		w.beatSome(round%8, 8)
		sleep.For(ctx, hostBeat/8)
	}
	r.Took = time.Since(began)
	r.CPU = processTime() - cpu - (w.spent() - before)
	r.Steps = len(steps) - stepped
	cancel()
	return r, <-ended
}

// clusterConfiguration is a pool of warm slices of this machine.
const clusterConfiguration = `
reservation "warm" {
  min {
    cpu    = 1
    slices = 2
  }
}
`

// launching measures the time from the call of Launch to the first instruction
// of the program, on a slice that is warm.
func (b clusterBench) launching() error {
	dir, err := b.applied("launching", clusterConfiguration)
	if err != nil {
		return err
	}
	end, err := b.watched(dir)
	if err != nil {
		return err
	}
	defer end()
	conn, err := b.connect(dir)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	cluster := clusterapi.NewClusterClient(conn)
	var all []time.Duration
	for i := range launches {
		took, err := b.launch(cluster, dir, i)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	slices.Sort(all)
	b.row("launch of a program on a warm local slice, p95", ms(all[len(all)*95/100]), "< 300 ms",
		fmt.Sprintf("p50 %s, longest %s of %d, one after another", ms(all[len(all)/2]), ms(all[len(all)-1]), len(all)))
	return nil
}

func (b clusterBench) launch(cluster clusterapi.ClusterClient, dir string, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(b.ctx, b.opts.limit)
	defer cancel()
	stamp := filepath.Join(dir, fmt.Sprintf("started-%d", i))
	began := time.Now()
	launched, err := cluster.Launch(ctx, &clusterapi.LaunchRequest{RequestId: rand.Text(), Request: &clusterapi.JobRequest{
		Name: fmt.Sprintf("probe-%d", i), Namespace: "bench",
		Entrypoint: &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Command{Command: &clusterapi.Command{Words: []string{"sh", "-c", "date +%s%N > " + stamp}}}},
		Resources:  &clusterapi.Resources{ReservationId: "warm"},
	}})
	if err != nil {
		return 0, err
	}
	done, err := cluster.Wait(ctx, &clusterapi.WaitRequest{JobIds: []string{launched.GetJobId()}})
	if err != nil {
		return 0, err
	}
	if s := done.GetJobs()[0]; s.GetStatus() != clusterapi.JobStatus_JOB_STATUS_SUCCEEDED {
		return 0, fmt.Errorf("probe %d: %s: %s", i, s.GetStatus(), s.GetReason())
	}
	text, err := os.ReadFile(stamp)
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Unix(0, ns).Sub(began), err
}

// watched starts a watch and waits until it leads.
func (b clusterBench) watched(dir string) (end func(), err error) {
	cmd := b.command(dir, "watch", "--http=off")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = b.command(dir, "destroy", "--auto-approve").Run()
	}
	if _, err := b.leader(dir, cmd); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// leader waits until a process leads, and returns when that was seen.
func (b clusterBench) leader(dir string, cmd *exec.Cmd) (time.Time, error) {
	s, err := store.OpenDir(filepath.Join(dir, ".fray"))
	if err != nil {
		return time.Time{}, err
	}
	for deadline := time.Now().Add(failoverLimit); time.Now().Before(deadline); sleep.For(b.ctx, 5*time.Millisecond) {
		lease, err := store.ReadLease(b.ctx, s)
		if err == nil && lease.PID == cmd.Process.Pid && lease.Live(time.Now()) {
			return time.Now(), nil
		}
	}
	return time.Time{}, errors.New("the watch does not lead")
}

// connect is a user's connection to the controller of a stack.
func (b clusterBench) connect(dir string) (*dial.Following, error) {
	root := filepath.Join(dir, ".fray")
	s, err := store.OpenDir(root)
	if err != nil {
		return nil, err
	}
	doc, _, err := apply.LoadState(b.ctx, s)
	if err != nil {
		return nil, err
	}
	return dial.Follow(dial.FollowConfig{Store: s, Token: keys.NewCommand(s, doc.Stack(), "bench").Token}), nil
}

// failover kills and stops leaders, and times until another one leads.
func (b clusterBench) failover() error {
	dir, err := b.applied("failover", clusterConfiguration)
	if err != nil {
		return err
	}
	defer func() { _ = b.command(dir, "destroy", "--auto-approve").Run() }()
	for _, how := range []struct {
		words  string
		signal syscall.Signal
	}{{"kill -9 of the leading watch to another one leading, worst of 3", syscall.SIGKILL}, {"the same, SIGSTOP: only the lease shows it", syscall.SIGSTOP}} {
		var worst time.Duration
		for range 3 {
			took, err := b.takeover(dir, how.signal)
			if err != nil {
				return err
			}
			worst = max(worst, took)
		}
		b.row(how.words, sec(worst), "< 5 s", "lease of 3.5 s")
	}
	return nil
}

func (b clusterBench) takeover(dir string, signal syscall.Signal) (time.Duration, error) {
	first, second := b.command(dir, "watch", "--http=off"), b.command(dir, "watch", "--http=off")
	if err := first.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = first.Process.Kill()
		_ = first.Wait()
	}()
	if _, err := b.leader(dir, first); err != nil {
		return 0, err
	}
	if err := second.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = second.Process.Signal(syscall.SIGTERM)
		_ = second.Wait()
	}()
	sleep.For(b.ctx, 2*time.Second) // until it waits
	began := time.Now()
	if err := first.Process.Signal(signal); err != nil {
		return 0, err
	}
	led, err := b.leader(dir, second)
	return led.Sub(began), err
}
