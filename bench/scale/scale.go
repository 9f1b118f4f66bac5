// Package scale measures a controller with many simulated hosts, whose bucket is emulated with
// latencies. They are the agent's links: of a slice of eight the first speaks for the others, and
// holds a real stream to the controller over the loopback, with TLS.
//
// The controller and the bucket are processes of their own (Control, Bucket). The hosts are in the
// process that measures, and share the cores with both, so some of what only hosts would pay is left out:
// a host reaches its relay without TLS and gRPC (within.go), many reads of the lease are one
// (bucket.go), and what machines do but report and obey. The stack is seeded as a controller
// leaves it that has led before. Start with Measure.
package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// Hosts is how many hosts a slice has.
const Hosts = 8

const (
	accelerator = "v5litepod-32" // a slice of eight hosts
	zone        = "us-west4-a"
	patience    = 3 * time.Minute
	// slicesAge is more than a slice must live for its end to say nothing of its zone.
	slicesAge = 24 * time.Hour
	poll      = 50 * time.Millisecond
	// gcPercent keeps what the hosts cost from the cores that they share with the controller.
	gcPercent = 300
	sayPace   = 5 * time.Second
	// hostsPerPoll is how many hosts are counted at each poll: to count all costs the hosts' cores.
	hostsPerPoll = 2500
)

// Bench is what is measured, and with how many.
type Bench struct {
	Slices int
	Deaths int
	Quiet  time.Duration
	Settle time.Duration // between two of what is measured
	// Profiles is a directory for profiles of this process; "": none are written.
	Profiles string
	// Start makes the process of a controller over the bucket at an address.
	Start func(ctx context.Context, url string) *exec.Cmd
	// Bucket makes the process of the bucket.
	Bucket func(ctx context.Context) *exec.Cmd
	Log    io.Writer
}

// Result is what was measured.
type Result struct {
	Hosts, Slices, Tasks int
	Quiet                float64 // share of a core
	QuietPeak            int64   // of resident memory, in the system's unit
	Writes, Lists, Reads float64 // of a host in an hour
	Deaths               []time.Duration
	Connected            time.Duration // until all hosts had streams at first
	First, Back          time.Duration // of a takeover: the first decision, all hosts
	Again                time.Duration // after a preemption, until all were asked for
	Longest              apply.Timing  // step of these
	Asked                int
	CPU                  CPU
}

// CPU is the time of the controllers' processors in a part of the measurement.
type CPU struct{ Connect, Deaths, Takeover, Again time.Duration }

// process is a running controller or bucket.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// started starts a process.
func started(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// ask tells a process a command and decodes what it answers.
func (p *process) ask(c command, into any) error {
	if _, err := fmt.Fprintln(p.in, c); err != nil {
		return err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the process %s: %w", p.cmd, err)
	}
	return json.Unmarshal([]byte(line), into)
}

// figure tells a controller's process a command.
func (p *process) figure(c command) (f figure, err error) {
	err = p.ask(c, &f)
	return f, err
}

func (p *process) end() {
	_ = p.cmd.Process.Kill() // or it has ended
	_ = p.cmd.Wait()
}

// Measure measures one size.
func (b Bench) Measure(ctx context.Context) (r Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := profiling{dir: b.Profiles}
	if err := own.next(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, own.end()) }()
	bucket, err := b.startBucket(ctx)
	if err != nil {
		return r, err
	}
	defer bucket.process.end()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	f, err := b.seeded(ctx, bucket, &r)
	if err != nil {
		return r, err
	}
	first, err := started(b.Start(ctx, bucket.url))
	if err != nil {
		return r, err
	}
	defer first.end()
	if err := errors.Join(b.connect(ctx, f, first, &r), own.next()); err != nil {
		return r, err
	}
	if err := errors.Join(b.quiet(ctx, bucket, first, &r), own.next()); err != nil {
		return r, err
	}
	b.say("quiet %.1f%% of a core, peak %d, per host-hour %.0f writes, %.1f lists, %.1f reads", 100*r.Quiet, r.QuietPeak, r.Writes, r.Lists, r.Reads)
	if err := b.deaths(ctx, f, first, &r); err != nil {
		return r, err
	}
	second, err := started(b.Start(ctx, bucket.url))
	if err != nil {
		return r, err
	}
	defer second.end()
	if err := b.takeover(ctx, f, first, &r); err != nil {
		return r, err
	}
	b.say("takeover %s %s", r.First, r.Back)
	led, err := second.figure(profile)
	if err != nil {
		return r, err
	}
	r.CPU.Takeover = led.CPU
	return r, b.preempted(ctx, second, &r)
}

// seeded brings the stack about in a bucket that is slow from then on.
func (b Bench) seeded(ctx context.Context, bucket *remote, r *Result) (*fleet, error) {
	s, err := open(ctx, bucket.url, bucket.client, time.Millisecond)
	if err != nil {
		return nil, err
	}
	of := &shared{Store: s, bucket: bucket}
	f, err := newFleet(of, bucket.put)
	if err != nil {
		return nil, err
	}
	of.report = f.report
	began := time.Now()
	if err := seed(ctx, f, b.Slices); err != nil {
		return nil, fmt.Errorf("bring the stack about: %w", err)
	}
	r.Hosts, r.Slices, r.Tasks = b.Slices*Hosts, b.Slices, b.Slices*Hosts*(1+finishedShare)
	if got := f.hosts(); got != r.Hosts {
		return nil, fmt.Errorf("%d hosts were made, want %d", got, r.Hosts)
	}
	b.say("%d hosts made in %s", r.Hosts, time.Since(began))
	_, err = bucket.ask(slow)
	return f, err
}

// connect has all hosts connect to the controller, once it leads.
func (b Bench) connect(ctx context.Context, f *fleet, first *process, r *Result) error {
	if err := leads(ctx, f.store); err != nil {
		return err
	}
	began := time.Now()
	for _, s := range f.slices {
		s.link(ctx)
	}
	for _, s := range f.slices {
		s.connect(ctx)
	}
	err := b.connected(ctx, f)
	r.Connected = time.Since(began)
	if err == nil {
		b.say("connected in %s", r.Connected)
	}
	_, profileErr := first.figure(profile)
	return errors.Join(err, profileErr)
}

// deaths has tasks die, one after another.
func (b Bench) deaths(ctx context.Context, f *fleet, first *process, r *Result) error {
	before, err := first.figure(profile)
	if err != nil {
		return err
	}
	for i := range b.Deaths {
		took, err := f.slices[i*len(f.slices)/b.Deaths].death(ctx)
		if err != nil {
			return err
		}
		r.Deaths = append(r.Deaths, took)
	}
	slices.Sort(r.Deaths)
	after, err := first.figure(tell)
	if err != nil {
		return err
	}
	r.CPU.Deaths = after.CPU - before.CPU
	b.say("deaths %s", r.Deaths)
	return nil
}

func (b Bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Log, "scale: "+format+"\n", args...)
}

var errPatience = errors.New("took too long")

func (f *fleet) hosts() (n int) {
	for _, s := range f.slices {
		n += len(s.hosts)
	}
	return n
}

// leads waits until a controller does.
func leads(ctx context.Context, s store.Store) error {
	for began := time.Now(); ; {
		lease, err := store.ReadLease(ctx, s)
		switch {
		case err == nil && lease.Live(time.Now()):
			return nil
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		case time.Since(began) > patience:
			return fmt.Errorf("a controller that leads: %w", errPatience)
		case !sleep.For(ctx, poll):
			return context.Cause(ctx)
		}
	}
}

// connected waits until all hosts are acknowledged.
func (b Bench) connected(ctx context.Context, f *fleet) error {
	for began, said := time.Now(), time.Now(); f.live() < f.hosts(); {
		if time.Since(said) > sayPace {
			said = time.Now()
			b.say("%d hosts are live after %s, %d speak through relays", f.live(), time.Since(began).Round(time.Second), f.relayed.Load())
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%d hosts are live: %w", f.live(), errPatience)
		}
		if !sleep.For(ctx, poll*time.Duration(1+f.hosts()/hostsPerPoll)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// quiet measures while nothing is to be done.
func (b Bench) quiet(ctx context.Context, bucket *remote, p *process, r *Result) error {
	sleep.For(ctx, b.Settle)
	before, err := p.figure(tell)
	if err != nil {
		return err
	}
	asked, err := bucket.ask(tell)
	if err != nil {
		return err
	}
	began := time.Now()
	sleep.For(ctx, b.Quiet)
	took := time.Since(began)
	askedAfter, err := bucket.ask(tell)
	if err != nil {
		return err
	}
	after, err := p.figure(tell)
	if err != nil {
		return err
	}
	r.CPU.Connect = before.CPU
	r.Quiet, r.QuietPeak = float64(after.CPU-before.CPU)/float64(took), after.Peak
	per := func(n int64) float64 { return float64(n) / float64(r.Hosts) / took.Hours() }
	r.Writes, r.Lists, r.Reads = per(askedAfter.Writes-asked.Writes), per(askedAfter.Lists-asked.Lists), per(askedAfter.Reads-asked.Reads)
	return nil
}

// awaitDecision has a host look for its assignment in the store, as one without a stream does, until the
// context ends.
func (s *slice) awaitDecision(ctx context.Context, n int) {
	for sleep.For(ctx, time.Second) {
		s.assigned(ctx, n, 0, nil)
	}
}

// death has a task die, and times until an assignment follows.
func (s *slice) death(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	s.die(ctx, 0)
	select {
	case at := <-s.decided:
		return at.Sub(began), nil
	case <-time.After(patience):
		return 0, fmt.Errorf("a decision about %s: %w", s.spec.Name, errPatience)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// takeover kills the controller that leads.
func (b Bench) takeover(ctx context.Context, f *fleet, first *process, r *Result) (err error) {
	sleep.For(ctx, b.Settle) // until the second waits
	began := time.Now()
	first.end()
	s := f.slices[len(f.slices)/2]
	looking, stop := context.WithCancel(ctx)
	go s.awaitDecision(looking, 0)
	r.First, err = s.death(ctx)
	stop()
	if err != nil {
		return err
	}
	sleep.For(ctx, max(0, lapsed-time.Since(began)))
	err = b.connected(ctx, f)
	r.Back = time.Since(began)
	return err
}

// lapsed is after how long no acknowledgement of the first controller counts any more.
const lapsed = 9 * time.Second

// preempted has all slices taken away. Steps count for a while longer, in which the new ones are listed.
func (b Bench) preempted(ctx context.Context, p *process, r *Result) error {
	sleep.For(ctx, b.Settle)
	began := time.Now()
	before, err := p.figure(preempt)
	if err != nil {
		return err
	}
	defer func() { _, _ = p.figure(profile) }()
	for r.Again == 0 || time.Since(began) < r.Again+b.Settle {
		sleep.For(ctx, poll)
		now, err := p.figure(tell)
		if err != nil {
			return err
		}
		r.Asked, r.CPU.Again = now.Created, now.CPU-before.CPU
		if sum(now.Longest) > sum(r.Longest) {
			r.Longest = now.Longest
		}
		if past := time.Since(began); r.Again == 0 && (r.Asked >= b.Slices || past > patience) {
			r.Again = past
		}
	}
	return nil
}
