package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/live"
	"github.com/fray-ml/fray/agent/mailbox"
	"github.com/fray-ml/fray/agent/notice"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/ports"
	"github.com/fray-ml/fray/agent/task"
	"github.com/fray-ml/fray/agent/usage"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// agent is the loop of one host, or of one packed task. Its fields are the loop's alone.
type agent struct {
	Config
	dir      *hostdir.Dir
	lock     *os.File // nil for a packed task
	state    *hostdir.State
	reporter *mailbox.Reporter
	poller   *mailbox.Poller
	ports    ports.Gang // held while no task runs
	report   state.HostReport

	// work ends when the host's directory is gone: nothing is worth waiting for.
	work    context.Context
	abandon context.CancelFunc
	updates chan task.Update

	want    *state.Assignment
	machine *machine
	tasks   *task.Host   // what tasks have of this host
	packed  *packedTasks // nil for a packed task

	task     *task.Task   // the last one
	ended    bool         // that one has
	rejected hostdir.Mark // the assignment that was rejected last
	lost     bool         // following the state failed and was logged
	// settling is set while the last task was found without its supervisor: nothing is
	// reported before its end is known, or it would pass for running once more.
	settling bool
}

// Run serves a host until ctx ends; then it ends the host's task and returns.
// It returns at once when another agent serves the host already, and soon after
// the host's directory was removed, with the task ended.
func Run(ctx context.Context, c Config) error {
	c, err := c.validate()
	if err != nil {
		return err
	}
	// An agent ends at no hangup. Were it ignored, as under nohup, commands could not receive it either.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	dir, err := hostdir.Open(c.Dir)
	if err != nil {
		return err
	}
	lock, err := agentLock(ctx, dir)
	if errors.Is(err, filelock.ErrHeld) {
		c.Log.Info("another agent serves this host")
		return nil
	}
	if err != nil {
		return err
	}
	if os.Getenv(hostdir.LockFDEnv) == "" {
		defer lock.Close()
	}
	// An inherited lock is the process's, and is held until that ends: a file
	// that nothing refers to any more would be closed by the collector.
	defer runtime.KeepAlive(lock)
	if err := hostdir.WriteHolder(lock, hostdir.Holder{PID: os.Getpid(), End: c.End, Dir: dir.Path}); err != nil {
		return err
	}
	if c.End {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	return serve(ctx, c, dir, place{lock: lock})
}

// agentLock takes the agent's lock, or takes it over from the parent. A process that
// checks whether the lock is held holds it for an instant itself, hence the patience.
func agentLock(ctx context.Context, dir *hostdir.Dir) (*os.File, error) {
	path := dir.File(hostdir.AgentLockFile)
	wait := 200 * time.Millisecond
	if given := os.Getenv(hostdir.LockFDEnv); given != "" {
		lock, err := inheritedLock(given, path)
		if lock != nil || err != nil {
			return lock, err
		}
		wait = handoverPatience
	}
	patience, cancel := context.WithTimeoutCause(ctx, wait, filelock.ErrHeld)
	defer cancel()
	return hostdir.WaitLock(patience, path)
}

// handoverPatience bounds how long a lock that was released for this process may be
// held by one that only checks whether it is held.
const handoverPatience = 2 * time.Second

// inheritedLock is the lock that this process has from before its exec; nil where
// it has it from a parent, or where that one's is not the host's any more. The
// parent's is released: it is the parent's too, so that a parent which is suspended
// right now would keep it beyond the agent's end, and the host would pass for alive.
func inheritedLock(given, path string) (*os.File, error) {
	fd, err := strconv.Atoi(given)
	if err != nil {
		return nil, fmt.Errorf("take over lock: %s: %w", hostdir.LockFDEnv, err)
	}
	var inherited, named unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &inherited), unix.Stat(path, &named)); err != nil {
		return nil, fmt.Errorf("take over lock: %w", err)
	}
	unix.CloseOnExec(fd)
	lock := os.NewFile(uintptr(fd), path)
	if inherited.Dev == named.Dev && inherited.Ino == named.Ino {
		if who, err := hostdir.ReadHolder(path); err == nil && who.PID == os.Getpid() {
			return lock, nil
		}
	}
	return nil, errors.Join(filelock.Release(lock), lock.Close())
}

func serve(ctx context.Context, c Config, dir *hostdir.Dir, at place) error {
	a := &agent{Config: c, dir: dir, lock: at.lock, machine: at.shared, updates: make(chan task.Update)}
	a.work, a.abandon = context.WithCancel(context.WithoutCancel(ctx))
	defer a.abandon()
	memory, err := hostdir.OpenState(dir)
	if err != nil {
		c.Log.Error("what this host's agent remembered is lost; it goes on without", "error", err)
	}
	a.state = memory
	keys, err := dir.Keys()
	if err != nil {
		return err
	}
	if at.shared == nil {
		a.machine = openMachine(c, dir, memory, keys)
		defer a.machine.close()
	}
	a.tasks = a.taskHost(keys)
	a.report = a.firstReport(keys)
	a.poller = mailbox.NewPoller(&mailbox.Poller{Store: c.Store, Slice: c.Slice, Log: c.Log})
	reports := a.reports(memory, at)
	if link := a.machine.link; link != nil {
		host := link.Host(live.Identity{Slice: c.Slice, Host: c.Host, Key: keys.Private()}, a.poller)
		defer host.Close()
		if at.shared == nil {
			a.machine.identities.Follow(host.Live)
		}
		a.poller.Live, reports.Stream, reports.Durable = host.Live, host, hostlink.Durable
	}
	a.reporter = mailbox.NewReporter(reports)
	if err := a.adopt(); err != nil {
		return err
	}
	if a.idle() {
		a.reservePorts()
	}
	defer a.ports.Release()
	a.publish()

	var workers sync.WaitGroup
	defer workers.Wait()
	if at.shared == nil {
		a.packed = newPackedTasks(a)
		defer a.packed.close()
	}
	defer a.abandon() // before waiting for them
	if err := a.packed.open(ctx); err != nil {
		return err
	}
	workers.Go(func() { a.reporter.Run(a.work) })
	if at.shared == nil && a.machine.link != nil {
		workers.Go(func() { a.machine.link.Run(a.work) })
	}
	in := inputs{assignments: make(chan state.Assignment), notices: make(chan string)}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	workers.Go(func() { a.poller.Run(watching, in.assignments) })
	workers.Go(func() { watchNotices(watching, c, in.notices) })
	return a.loop(ctx, in)
}

// reports is what reports are written by. That of a host has what its packed tasks use,
// whose own reports are rare.
func (a *agent) reports(memory *hostdir.State, at place) *mailbox.Reporter {
	r := &mailbox.Reporter{
		Store: a.Store, Key: store.HostKey(a.Slice, a.Host), Heartbeat: a.Heartbeat, Log: a.Log,
		Gone: a.dir.Gone, TakeSeqs: memory.TakeSeqs,
	}
	if at.shared == nil {
		r.Usage = (&usage.Sampler{Tasks: a.machine.api.Live.Running}).Sample
	}
	return r
}

// firstReport is the host's report before anything happens.
func (a *agent) firstReport(keys *hostdir.Keys) state.HostReport {
	remembered, offer := a.state.Get(), a.machine.api.Offer
	return state.HostReport{
		Slice: a.Slice, Host: a.Host, Boot: rand.Text(), Version: a.Version, PID: os.Getpid(), Address: a.Address,
		Instance: a.Instance, API: offer.API, Fingerprint: offer.Fingerprint,
		Epoch: remembered.Done.Epoch, Generation: remembered.Done.Generation,
		SigningKey: keys.Public(), IdentityKey: keys.IdentityKey(),
		CoordinatorPort: remembered.Ports[0], MegascalePort: remembered.Ports[1],
	}
}

// taskHost is what the tasks have of this host.
func (a *agent) taskHost(keys *hostdir.Keys) *task.Host {
	h := &task.Host{
		Config: task.Config{
			Slice: a.Slice, Host: a.Host, Address: a.Address, WorkDir: a.WorkDir, CacheDir: a.CacheDir,
			Workspace: a.Workspace, Zone: a.Zone, Executable: a.Executable, GPUs: a.GPUs, Simulated: a.Simulated, TPUNode: a.TPUNode,
			Sealer: a.Sealer,
			Store:  a.Store, Log: a.Log, RegistryToken: a.RegistryToken,
		},
		Dir: a.dir, Keys: keys, Identities: a.machine.identities, Work: a.work, Cluster: a.machine.api.Cluster,
		Stack: a.machine.api.Stack, FreePorts: a.ports.Release, Updates: a.updates,
	}
	if a.lock == nil {
		h.Packed = a.Slice
	}
	return h
}

// inputs are the events of the loop besides those of its tasks.
type inputs struct {
	assignments chan state.Assignment
	notices     chan string
}

// goneInterval is the time between two checks that the host's directory is there.
const goneInterval = 500 * time.Millisecond

func (a *agent) loop(ctx context.Context, in inputs) error {
	check := time.NewTicker(goneInterval)
	defer check.Stop()
	stopped := ctx.Done()
	for {
		select {
		case <-stopped:
			stopped = nil
			in.assignments = nil
			if !a.idle() {
				a.task.Stop(outcome.StopCause{State: schema.TaskKilled, Reason: "the agent was asked to end", Stop: schema.StopRequest})
			}
		case next := <-in.assignments:
			if next.MovedTo != "" {
				if a.packed != nil { // packed tasks come along
					a.follow(ctx, next.MovedTo)
				}
				continue
			}
			a.accept(next)
			a.reconcile()
		case u := <-a.updates:
			a.observe(u)
			if stopped != nil {
				a.reconcile()
			}
		case packed := <-a.packed.endings():
			a.packed.left(packed)
		case a.report.Notice = <-in.notices:
			a.publish()
			a.packed.noticed(a.report.Notice)
			if a.report.Notice != "" && !a.idle() {
				a.task.Stop(outcome.StopCause{State: schema.TaskPreempted, Reason: a.report.Notice, Stop: schema.StopPreemption, Before: time.Now().Add(notice.Window)})
			}
			a.reconcile()
		case <-check.C:
			if a.dir.Gone() {
				a.Log.Warn("the host's directory is gone")
				a.abandon()
				a.drain()
				return nil
			}
		}
		if stopped == nil && a.idle() && a.packed.empty() {
			a.flush()
			return a.dir.MarkClean()
		}
	}
}

// drain waits for the task of an abandoned host.
func (a *agent) drain() {
	for !a.idle() {
		a.observe(<-a.updates)
	}
}

// idle reports whether nothing of any task is left on the host.
func (a *agent) idle() bool { return a.task == nil || a.ended }

func (a *agent) publish() {
	if a.settling {
		return
	}
	a.reporter.Publish(a.report)
}

// flushPatience bounds how long a change waits for being read: a store that
// does not answer must not keep a host from obeying.
const flushPatience = 2 * time.Second

func (a *agent) flush() {
	ctx, cancel := context.WithTimeout(a.work, flushPatience)
	defer cancel()
	if err := a.reporter.Flush(ctx); err != nil {
		a.Log.Warn("report not flushed", "error", err)
	}
}

// accept takes note of an assignment unless a newer one was seen.
func (a *agent) accept(next state.Assignment) {
	at := hostdir.Mark{Epoch: next.Epoch, Generation: next.Generation}
	seen := a.state.Get().Seen
	if at.Before(seen) {
		a.Log.Warn("older assignment ignored", "epoch", at.Epoch, "generation", at.Generation)
		return
	}
	if seen.Before(at) {
		if err := a.state.Change(func(s *hostdir.AgentState) { s.Seen = at }); err != nil {
			a.Log.Error("assignment not remembered", "error", err)
		}
	}
	a.want = &next
	a.machine.api.SetStack(next.Stack)
	a.packed.want(next.PackedTasks)
}

// reconcile takes the next step that the wanted assignment needs. It never
// waits: what it starts comes back as updates.
func (a *agent) reconcile() {
	if a.want == nil {
		return
	}
	same := a.task != nil && a.want.Run != nil && a.task.Key() == task.Key(a.want)
	if !a.idle() {
		if !same {
			a.task.Stop(outcome.StopCause{State: schema.TaskKilled, Reason: stopReason(a.want), Stop: stopOf(a.want)})
			return
		}
		a.task.Provide(a.want.Run)
		a.task.Recertify(a.want.Run)
		a.carriedOut()
		return
	}
	a.carriedOut()
	if a.want.Run != nil && !same {
		a.start(a.want)
	}
}

// carriedOut records that everything older than the wanted assignment has ended.
func (a *agent) carriedOut() {
	at := hostdir.Mark{Epoch: a.want.Epoch, Generation: a.want.Generation}
	if a.state.Get().Done == at {
		return
	}
	if err := a.state.Change(func(s *hostdir.AgentState) { s.Done = at }); err != nil {
		a.Log.Error("assignment not remembered", "error", err)
	}
	a.report.Epoch, a.report.Generation = at.Epoch, at.Generation
	a.publish()
	if a.want.Run != nil && a.ended {
		a.flush() // the old task's end, before the new one takes its place
	}
}

// observe takes an update of the task into the report.
func (a *agent) observe(u task.Update) {
	if u.Task != a.task {
		return
	}
	a.settling = false
	a.report.Task = &u.Report
	if u.Report.State.Ended() {
		a.ended = true
		a.reservePorts()
		a.poller.Expect()
	}
	a.publish()
}

func (a *agent) reservePorts() {
	before := a.state.Get().Ports
	if before == [2]int{} && !a.Simulated {
		before = ports.GangOfMachine()
	}
	numbers, err := a.ports.Reserve(before)
	if err != nil {
		a.Log.Error("no ports for a coordinator", "error", err)
	}
	if numbers != a.state.Get().Ports {
		if err := a.state.Change(func(s *hostdir.AgentState) { s.Ports = numbers }); err != nil {
			a.Log.Error("ports not remembered", "error", err)
		}
	}
	a.report.CoordinatorPort, a.report.MegascalePort = numbers[0], numbers[1]
}

func watchNotices(ctx context.Context, c Config, out chan<- string) {
	last := ""
	for ctx.Err() == nil {
		text, err := c.Notices.Next(ctx, last)
		if err != nil {
			sleep.For(ctx, notice.RetryInterval)
			continue
		}
		select {
		case out <- text:
			last = text
		case <-ctx.Done():
		}
	}
}
