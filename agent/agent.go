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

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// agent is the loop of one host. Its fields are the loop's alone but for those
// that say otherwise.
type agent struct {
	Config
	dir      *hostDir
	lock     *os.File
	state    *stateFile
	keys     *hostKeys
	reporter *reporter
	ports    gangPorts // held while no task runs
	report   state.HostReport

	// work ends when the host's directory is gone: nothing is worth waiting for.
	work    context.Context
	abandon context.CancelFunc
	updates chan update

	want    *state.Assignment
	live    *liveTasks
	cluster string       // where tasks find the cluster API, "" if nowhere
	host    *hostService // what this process serves
	lodge   *lodge       // the guests, nil for a guest

	task   *task // the last one
	ended  bool  // that one has
	refuse mark  // the assignment that was refused last
	lost   bool  // following the state failed and was logged
	// settling says that the last task was found without its supervisor: nothing is
	// reported before its end is known, or it would pass for running once more.
	settling bool
}

// update is a task's word to the loop.
type update struct {
	task   *task
	report state.TaskReport
}

// Run serves a host until ctx ends; then it ends the host's task and returns.
// It returns at once when another agent serves the host already, and soon after
// the host's directory was removed, with the task ended.
func Run(ctx context.Context, c Config) error {
	c, err := c.validate()
	if err != nil {
		return err
	}
	// Nobody hangs up on an agent. Were it ignored, as under nohup, commands could not hear of it either.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	dir, err := openHostDir(c.Dir)
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
	if os.Getenv(lockFDEnv) == "" {
		defer lock.Close()
	}
	// An inherited lock is the process's, and is held until that ends: a file
	// that nothing refers to any more would be closed by the collector.
	defer runtime.KeepAlive(lock)
	if err := writeHolder(lock, holder{PID: os.Getpid(), End: c.End, Dir: dir.path}); err != nil {
		return err
	}
	if c.End {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	return serve(ctx, c, dir, place{lock: lock})
}

// agentLock takes the agent's lock, or over from the parent. Those who look
// whether it is held hold it for an instant themselves, hence the patience.
func agentLock(ctx context.Context, dir *hostDir) (*os.File, error) {
	path := dir.file(agentLockFile)
	wait := 200 * time.Millisecond
	if given := os.Getenv(lockFDEnv); given != "" {
		lock, err := inheritedLock(given, path)
		if lock != nil || err != nil {
			return lock, err
		}
		wait = handoverPatience
	}
	patience, cancel := context.WithTimeoutCause(ctx, wait, filelock.ErrHeld)
	defer cancel()
	return waitLock(patience, path)
}

// handoverPatience bounds how long a lock that was let go of for this process may
// be had by somebody who only looks.
const handoverPatience = 2 * time.Second

// inheritedLock is the lock that this process has from before its exec; nil where
// it has it from a parent, or where that one's is not the host's any more. The
// parent's is let go of: it is the parent's too, so that a parent which is suspended
// right now would keep it beyond the agent's end, and the host would pass for alive.
func inheritedLock(given, path string) (*os.File, error) {
	fd, err := strconv.Atoi(given)
	if err != nil {
		return nil, fmt.Errorf("take over lock: %s: %w", lockFDEnv, err)
	}
	var inherited, named unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &inherited), unix.Stat(path, &named)); err != nil {
		return nil, fmt.Errorf("take over lock: %w", err)
	}
	unix.CloseOnExec(fd)
	lock := os.NewFile(uintptr(fd), path)
	if inherited.Dev == named.Dev && inherited.Ino == named.Ino {
		if who, err := readHolder(path); err == nil && who.PID == os.Getpid() {
			return lock, nil
		}
	}
	return nil, errors.Join(filelock.Release(lock), lock.Close())
}

func serve(ctx context.Context, c Config, dir *hostDir, at place) error {
	a := &agent{Config: c, dir: dir, lock: at.lock, updates: make(chan update)}
	a.work, a.abandon = context.WithCancel(context.WithoutCancel(ctx))
	defer a.abandon()
	memory, err := openState(dir)
	if err != nil {
		c.Log.Error("what this host's agent remembered is lost; it goes on without", "error", err)
	}
	a.state = memory
	if a.keys, err = dir.keys(); err != nil {
		return err
	}
	remembered := memory.get()
	a.report = state.HostReport{
		Slice: c.Slice, Host: c.Host, Boot: rand.Text(), Version: c.Version, PID: os.Getpid(), Address: c.Address,
		Instance: c.Instance,
		Epoch:    remembered.Done.Epoch, Generation: remembered.Done.Generation,
		SigningKey: a.keys.public(), IdentityKey: a.keys.identityKey(),
		CoordinatorPort: remembered.Ports[0], MegascalePort: remembered.Ports[1],
	}
	a.reporter = newReporter(&reporter{
		store: c.Store, key: store.HostKey(c.Slice, c.Host), heartbeat: c.Heartbeat, log: c.Log,
		gone: dir.gone, takeSeqs: memory.takeSeqs,
	})
	offered, stopAPI := a.openAPI(at)
	defer stopAPI()
	if err := a.adopt(); err != nil {
		return err
	}
	if a.idle() {
		a.reservePorts()
	}
	defer a.ports.release()
	a.publish()

	var workers sync.WaitGroup
	defer workers.Wait()
	if at.guest == nil {
		a.lodge = newLodge(a)
		defer a.lodge.close()
	}
	defer a.abandon() // before waiting for them
	if err := a.lodge.open(ctx); err != nil {
		return err
	}
	workers.Go(func() { a.reporter.run(a.work) })
	in := inputs{assignments: make(chan state.Assignment), notices: make(chan string), offers: make(chan offer)}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	workers.Go(func() {
		p := poller{store: c.Store, slice: c.Slice, log: c.Log}
		p.run(watching, in.assignments)
	})
	workers.Go(func() { watchNotices(watching, c, in.notices) })
	workers.Go(func() { offered(watching, in.offers) })
	return a.loop(ctx, in)
}

// inputs are what the loop hears of besides its tasks.
type inputs struct {
	assignments chan state.Assignment
	notices     chan string
	offers      chan offer
}

// goneInterval is how often the agent looks whether its directory is there.
const goneInterval = 500 * time.Millisecond

func (a *agent) loop(ctx context.Context, in inputs) error {
	look := time.NewTicker(goneInterval)
	defer look.Stop()
	stopped := ctx.Done()
	for {
		select {
		case <-stopped:
			stopped = nil
			in.assignments = nil
			if !a.idle() {
				a.task.stop(schema.TaskKilled, "the agent was told to end")
			}
		case next := <-in.assignments:
			if next.MovedTo != "" {
				if a.lodge != nil { // guests come along
					a.follow(ctx, next.MovedTo)
				}
				continue
			}
			a.accept(next)
			a.reconcile()
		case u := <-a.updates:
			a.hear(u)
			if stopped != nil {
				a.reconcile()
			}
		case o := <-in.offers:
			a.report.API, a.report.Fingerprint = o.api, o.fingerprint
			a.publish()
			a.lodge.offered(o)
		case guest := <-a.lodge.endings():
			a.lodge.left(guest)
		case a.report.Notice = <-in.notices:
			a.publish()
			a.lodge.noticed(a.report.Notice)
			if a.report.Notice != "" && !a.idle() {
				a.task.stop(schema.TaskPreempted, a.report.Notice)
			}
			a.reconcile()
		case <-look.C:
			if a.dir.gone() {
				a.Log.Warn("the host's directory is gone")
				a.abandon()
				a.drain()
				return nil
			}
		}
		if stopped == nil && a.idle() && a.lodge.empty() {
			a.flush()
			return a.dir.markClean()
		}
	}
}

// drain waits for the task of an abandoned host.
func (a *agent) drain() {
	for !a.idle() {
		a.hear(<-a.updates)
	}
}

// idle reports whether nothing of any task is left on the host.
func (a *agent) idle() bool { return a.task == nil || a.ended }

func (a *agent) publish() {
	if a.settling {
		return
	}
	a.reporter.publish(a.report)
}

// flushPatience bounds how long a change waits for being read: a store that
// does not answer must not keep a host from obeying.
const flushPatience = 2 * time.Second

func (a *agent) flush() {
	ctx, cancel := context.WithTimeout(a.work, flushPatience)
	defer cancel()
	if err := a.reporter.flush(ctx); err != nil {
		a.Log.Warn("report not flushed", "error", err)
	}
}

// accept takes note of an assignment unless a newer one was seen.
func (a *agent) accept(next state.Assignment) {
	at := mark{Epoch: next.Epoch, Generation: next.Generation}
	seen := a.state.get().Seen
	if at.before(seen) {
		a.Log.Warn("older assignment ignored", "epoch", at.Epoch, "generation", at.Generation)
		return
	}
	if seen.before(at) {
		if err := a.state.change(func(s *agentState) { s.Seen = at }); err != nil {
			a.Log.Error("assignment not remembered", "error", err)
		}
	}
	a.want = &next
	a.host.saw(next.Stack)
	a.lodge.want(next.PackedTasks)
}

// reconcile does the next thing that the wanted assignment needs. It never
// waits: what it starts comes back as updates.
func (a *agent) reconcile() {
	if a.want == nil {
		return
	}
	same := a.task != nil && a.want.Run != nil && a.task.in.Key == taskKey(a.want)
	if !a.idle() {
		if !same {
			a.task.stop(schema.TaskKilled, stopReason(a.want))
			return
		}
		a.task.provide(a.want.Run)
		a.task.recertify(a.want.Run)
		a.carriedOut()
		return
	}
	a.carriedOut()
	if a.want.Run != nil && !same {
		a.start(a.want)
	}
}

// stopReason is why what runs is stopped for what is wanted now.
func stopReason(want *state.Assignment) string {
	switch {
	case want.Why != "":
		return want.Why
	case want.Run != nil:
		return fmt.Sprintf("stopped for attempt %d of %s", want.Run.Attempt, want.Run.Job)
	}
	return "stopped by the controller"
}

// carriedOut records that everything older than the wanted assignment has ended.
func (a *agent) carriedOut() {
	at := mark{Epoch: a.want.Epoch, Generation: a.want.Generation}
	if a.state.get().Done == at {
		return
	}
	if err := a.state.change(func(s *agentState) { s.Done = at }); err != nil {
		a.Log.Error("assignment not remembered", "error", err)
	}
	a.report.Epoch, a.report.Generation = at.Epoch, at.Generation
	a.publish()
	if a.want.Run != nil && a.ended {
		a.flush() // the old task's end, before the new one takes its place
	}
}

// hear takes what the task says into the report.
func (a *agent) hear(u update) {
	if u.task != a.task {
		return
	}
	a.settling = false
	a.report.Task = &u.report
	if u.report.State.Ended() {
		a.ended = true
		a.reservePorts()
	}
	a.publish()
}

func (a *agent) reservePorts() {
	before := a.state.get().Ports
	numbers, err := a.ports.reserve(before)
	if err != nil {
		a.Log.Error("no ports for a coordinator", "error", err)
	}
	if numbers != before {
		if err := a.state.change(func(s *agentState) { s.Ports = numbers }); err != nil {
			a.Log.Error("ports not remembered", "error", err)
		}
	}
	a.report.CoordinatorPort, a.report.MegascalePort = numbers[0], numbers[1]
}

func watchNotices(ctx context.Context, c Config, out chan<- string) {
	last := ""
	for ctx.Err() == nil {
		notice, err := c.Notices.Next(ctx, last)
		if err != nil {
			sleep.For(ctx, noticeInterval)
			continue
		}
		select {
		case out <- notice:
			last = notice
		case <-ctx.Done():
		}
	}
}
