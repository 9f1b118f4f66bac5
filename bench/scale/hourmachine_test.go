package scale

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/agent/live"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// machines are the hosts of a slice that was made. Their fields belong to the mutex.
type machines struct {
	world  *world
	spec   schema.SliceSpec
	number int // among all ever made: a name is used again
	hosts  []*machine

	mu    sync.Mutex
	phase schema.SlicePhase
}

// machine is a host: what is on its disk outlives its agent, and so does its task.
type machine struct {
	of     *machines
	number int
	key    ed25519.PrivateKey
	wake   chan struct{}

	// On its disk.
	seq        uint64
	boots      int
	object     state.Generation // of the assignment
	epoch      uint64
	generation int64 // highest seen
	done       int64 // of that, everything older has ended
	run        *state.Run
	task       *state.TaskReport

	runs    bool               // a process of the task is there
	stopsAt time.Time          // zero: it is not told to stop
	stop    context.CancelFunc // of the agent; nil: none runs
	returns time.Time          // when the agent starts again; zero: it does not
	since   time.Time          // when the agent started, or was cut off last
}

func (m *machine) name() string { return fmt.Sprintf("%s/%d", m.of.spec.Name, m.number) }

// address is where others of the slice reach the machine.
func (m *machine) address() string { return fmt.Sprintf("%s#%d", m.name(), m.of.number) }

func (m *machine) fingerprint() string {
	sum := sha256.Sum256(fmt.Append(nil, m.address(), m.boots))
	return hex.EncodeToString(sum[:])
}

func (s *machines) any() *machine {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	return s.hosts[s.world.rand.IntN(len(s.hosts))]
}

// start starts the agent.
func (m *machine) start() {
	w := m.of.world
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.stop != nil || m.of.phase != schema.SliceReady {
		return
	}
	m.boots++
	m.returns, m.since = time.Time{}, time.Now()
	ctx, cancel := context.WithCancel(w.t.Context())
	in := door{Store: w.objects, world: w, machine: m.address(), ctx: ctx}
	who := live.Identity{Slice: m.of.spec.Name, Host: m.number, Key: m.key}
	var mu sync.Mutex
	stack := ""
	link := live.Open(live.Config{
		Store: in, Identity: who, Connect: w.wire.connector(m.address()), Log: slog.New(slog.DiscardHandler),
		Stack:   func() string { mu.Lock(); defer mu.Unlock(); return stack },
		Belongs: func(of string) { mu.Lock(); defer mu.Unlock(); stack = of },
	})
	host := link.Host(who, mail{m})
	gone := w.wire.serve(m.address(), &server{fingerprint: m.fingerprint(), hosts: link.Relay()})
	m.stop = func() {
		cancel()
		go gone()
		m.stop = nil
	}
	w.ended.Go(func() { link.Run(ctx) })
	w.ended.Go(func() { m.live(ctx, in, host) })
}

// kill ends the agent, and the machine's task with it or not, for a while.
func (m *machine) kill(task bool, a, b time.Duration) {
	returns := time.Now().Add(m.of.world.between(a, b))
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.stop == nil {
		return
	}
	m.stop()
	m.returns = returns
	if task && m.runs {
		m.exit(schema.TaskWorkerFailed, -1)
	}
}

// failTask has the task fail.
func (m *machine) failTask() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if !m.runs {
		return
	}
	m.exit(schema.TaskFailed, 1)
	w := m.of.world
	w.mu.Lock()
	w.failures[m.task.Job]++
	w.mu.Unlock()
	m.signal()
}

func (m *machine) exit(how schema.TaskState, code int) {
	task := *m.task
	task.State, task.EndedAt, task.Reason = how, time.Now(), "simulated"
	if code >= 0 {
		task.ExitCode = &code
	}
	m.task = &task
	m.stopped()
}

func (m *machine) stopped() {
	m.runs, m.stopsAt = false, time.Time{}
	w := m.of.world
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running[m.task.Job], m)
}

func (m *machine) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// mail is the mailbox of a machine.
type mail struct{ m *machine }

// Known is the generation of the assignment that the machine has.
func (b mail) Known() store.Generation {
	b.m.of.mu.Lock()
	defer b.m.of.mu.Unlock()
	return b.m.object
}

// Push takes in an assignment that was pushed.
func (b mail) Push(object store.Generation, data []byte) {
	b.m.of.mu.Lock()
	defer b.m.of.mu.Unlock()
	if data == nil {
		object, data = -1, nil // read it
	}
	b.m.take(object, data)
	b.m.signal()
}

// take takes in an assignment; one without data is read in the store.
func (m *machine) take(object store.Generation, data []byte) {
	if object < 0 {
		m.object = 0
		return
	}
	if object <= m.object {
		return
	}
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		m.of.world.count("assignment that cannot be read")
		return
	}
	m.object = object
	if a.Epoch > m.epoch && a.Generation != m.generation || a.Epoch == m.epoch && a.Generation > m.generation {
		m.epoch, m.generation, m.run = a.Epoch, a.Generation, a.Run
		if m.runs && m.stopsAt.IsZero() {
			m.stopsAt = time.Now().Add(time.Second)
		}
	}
	m.epoch = max(m.epoch, a.Epoch)
}

// act does what the assignment says, as agents do: all hosts of a slice have ended what is older
// before one starts. It reports whether that was news.
func (m *machine) act() bool {
	switch {
	case m.runs && !m.stopsAt.IsZero() && !time.Now().Before(m.stopsAt):
		m.exit(schema.TaskKilled, -1)
	case m.runs && m.task.Generation != m.generation: // its old task has not ended yet
		return false
	case m.done != m.generation:
		m.done = m.generation
		for _, other := range m.of.hosts {
			other.signal()
		}
	case m.task != nil && m.task.Generation == m.done:
		if !m.runs || m.task.State != schema.TaskBuilding {
			return false
		}
		task := *m.task
		task.State = schema.TaskRunning
		m.task = &task
	case m.run == nil:
		return false
	case slices.ContainsFunc(m.of.hosts, func(other *machine) bool { return other.done != m.done }):
		return false
	default:
		m.task = &state.TaskReport{
			Job: m.run.Job, Attempt: m.run.Attempt, Generation: m.done, State: schema.TaskBuilding, Started: true, StartedAt: time.Now(),
			Task: slices.IndexFunc(m.run.Peers, func(p state.Peer) bool { return p.Slice == m.of.spec.Name && p.Host == m.number }),
		}
		m.runs = true
		m.of.world.starting(m)
	}
	return true
}

// starting sees a task start: once in an attempt, and beside no other attempt of the job.
func (w *world) starting(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally["task started"]++
	once := fmt.Sprintf("attempt %d of %s on %s", m.run.Attempt, m.run.JobID, m.address())
	if w.starts[once]++; w.starts[once] > 1 {
		w.fail("started twice: %s", once)
	}
	if w.running[m.run.Job] == nil {
		w.running[m.run.Job] = map[*machine]int{}
	}
	for other, attempt := range w.running[m.run.Job] {
		if attempt != m.run.Attempt || other.of != m.of {
			w.fail("%s starts while attempt %d runs on %s", once, attempt, other.address())
		}
	}
	w.running[m.run.Job][m] = m.run.Attempt
}

// report is what the machine reports now.
func (m *machine) report() state.HostReport {
	m.seq++
	return state.HostReport{
		Slice: m.of.spec.Name, Host: m.number, Boot: fmt.Sprint(m.of.number, ".", m.boots), Seq: m.seq, At: time.Now(),
		Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2, SigningKey: m.key.Public().(ed25519.PublicKey),
		API: m.address(), Fingerprint: m.fingerprint(), Epoch: m.epoch, Generation: m.done, Task: m.task,
	}
}

// live is what an agent does until it is killed: by stream at its pace, to the store when there
// is news and now and then, and by the store alone without a stream.
func (m *machine) live(ctx context.Context, in store.Store, host *hostlink.Host) {
	written, news := time.Now().Add(-rand.N(signOfLife)), true
	for ctx.Err() == nil {
		wait := host.Beat()
		m.of.mu.Lock()
		if ctx.Err() != nil { // it was killed meanwhile
			m.of.mu.Unlock()
			return
		}
		for m.act() {
			news = true
		}
		r := m.report()
		if !m.stopsAt.IsZero() {
			wait = min(wait, time.Until(m.stopsAt))
		}
		unread := m.object == 0
		m.of.mu.Unlock()
		host.Report(r)
		silent := !host.Live()
		if since := time.Since(written); news || since > signOfLife || silent && since > hostlink.HeartbeatDefault {
			if data, err := store.Encode(r); err == nil {
				_, err = in.Put(ctx, store.HostKey(r.Slice, r.Host), data, store.Any)
				news = err != nil
			}
			written = time.Now()
		}
		if silent || unread {
			wait = min(wait, 2*time.Second)
			if o, err := in.Get(ctx, store.AssignKey(r.Slice)); err == nil {
				m.of.mu.Lock()
				m.take(o.Generation, o.Data)
				m.of.mu.Unlock()
			}
		}
		timer := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-m.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
