package rehearse

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Times of a simulated host beside its boot.
const (
	obeyTakes  = time.Second     // from an assignment to its host's first report of it
	startTakes = 4 * time.Second // from then to the running task
	stopTakes  = 5 * time.Second // of a task that is told to end
)

// How the provider marks what it makes: a slice's spec is in the metadata of
// each of its machines.
const (
	metadataSpec = "fray-spec"
	labelStack   = "fray-stack"
	labelSlice   = "fray-slice"
)

// fleet is all machines that are powered on, with their agents: what a real
// agent does on real ones, as far as others can see it. Nothing of it runs by
// itself; everything follows from a call or a timer.
type fleet struct {
	clock *cloud.Virtual
	stack string // whose slices they are; all else is left alone
	store *memory
	watch fleetWatch

	mu       sync.Mutex
	machines map[string]*host   // by the machine's id
	slices   map[string][]*host // by slice, those that are or were last there
	gangs    map[gangKey]*gang
}

// fleetWatch is told what becomes of gangs, machines and their tasks, in order
// and with the fleet's lock held.
type fleetWatch interface {
	powered(h *host, on bool, now time.Time)
	// runs: all tasks of an attempt run now.
	runs(g *gang, now time.Time)
	// breaks: it does not any more.
	breaks(g *gang, now time.Time)
	starting(h *host, run *state.Run)
}

// host is one machine.
type host struct {
	machine cloud.Machine
	spec    schema.SliceSpec
	mine    bool // it belongs to a slice of the stack
	on      bool
	up      bool // its agent reports
	boots   int
	report  state.HostReport
	want    *state.Assignment
	seen    mark
	gang    *gang // of the task, while its process is there
	started int   // tasks ever, to tell one from the next

	packed       map[string]*host // packed tasks that the machine serves, by slice
	packedStarts int              // of them ever
	leaving      bool             // a packed task that is to go
}

// mark orders assignments.
type mark struct {
	epoch      uint64
	generation int64
}

func (m mark) before(other mark) bool {
	return m.epoch < other.epoch || m.epoch == other.epoch && m.generation < other.generation
}

// gangKey names one attempt as its assignments have it.
type gangKey struct {
	job        string // its id
	attempt    int
	generation int64
}

// gang is all tasks of one attempt.
type gang struct {
	gangKey
	addr  schema.Address
	tasks int
	live  map[*host]bool // whose process runs
	whole bool           // all do
	since time.Time      // when that began
}

func newFleet(clock *cloud.Virtual, stack string, s *memory) *fleet {
	f := &fleet{clock: clock, stack: stack, store: s, machines: map[string]*host{}, slices: map[string][]*host{}, gangs: map[gangKey]*gang{}}
	s.assigned = f.assigned
	return f
}

var _ cloud.Hosts = (*fleet)(nil)

// Start powers a machine on.
func (f *fleet) Start(m cloud.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.machines[m.ID]
	if h == nil {
		h = &host{machine: m}
		h.mine = json.Unmarshal([]byte(m.Metadata[metadataSpec]), &h.spec) == nil && h.spec.Stack == f.stack
		f.machines[m.ID] = h
		if h.mine {
			f.slices[h.spec.Name] = append(slices.DeleteFunc(f.slices[h.spec.Name], h.replaces), h)
		}
	}
	h.machine.Bad = m.Bad
	h.on = true
	h.boots++
	boot := h.boots
	f.watch.powered(h, true, f.clock.Now())
	if !h.mine {
		return
	}
	f.clock.AfterFunc(f.clock.Now().Add(m.Boot), func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if h.on && h.boots == boot {
			f.bootUp(h)
		}
	})
}

// replaces reports whether a machine takes the place of a former one.
func (h *host) replaces(former *host) bool {
	return !former.on && former.machine.Worker == h.machine.Worker
}

// bootUp is the agent's first report. Tasks that ran when the power went are lost.
func (f *fleet) bootUp(h *host) {
	h.up = true
	n := h.machine.Worker
	task := h.report.Task
	h.report = state.HostReport{
		Slice: h.spec.Name, Host: n, Boot: fmt.Sprintf("%s-%d", h.machine.ID, h.boots), Version: "rehearsal",
		Address: h.machine.Addresses[n], CoordinatorPort: 8476, MegascalePort: 8081,
		Epoch: h.report.Epoch, Generation: h.report.Generation, Task: task,
	}
	if task != nil && !task.State.Ended() {
		f.end(h, schema.TaskExitUnknown, "exit status unknown: it was gone when the agent came back")
	}
	f.store.report(h.report)
	if h.want == nil {
		h.want = f.store.assignment(h.spec.Name)
	}
	if h.want != nil {
		f.later(h, obeyTakes, f.reconcile)
	}
}

// Notice tells a machine that it will go.
func (f *fleet) Notice(id string, event cloud.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.machines[id]
	if h == nil || !h.up {
		return
	}
	h.report.Notice = string(event)
	f.store.report(h.report)
	f.noticePacked(h)
	if h.gang != nil {
		f.stop(h, schema.TaskPreempted, h.report.Notice)
	}
}

// Stop powers a machine off.
func (f *fleet) Stop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.machines[id]; h != nil {
		f.powerOff(h)
	}
}

// Remove takes a machine away.
func (f *fleet) Remove(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.machines[id]
	if h == nil {
		return
	}
	f.powerOff(h)
	delete(f.machines, id)
	left := slices.DeleteFunc(f.slices[h.spec.Name], func(other *host) bool { return other == h })
	f.slices[h.spec.Name] = left
	if len(left) == 0 {
		delete(f.slices, h.spec.Name)
	}
}

func (f *fleet) powerOff(h *host) {
	if !h.on {
		return
	}
	h.on = false
	f.watch.powered(h, false, f.clock.Now())
	if h.up {
		h.up = false
		f.store.silence(h.spec.Name, h.machine.Worker)
	}
	f.losePacked(h)
	f.leave(h)
}

// assigned sees an assignment written: the hosts of its slice come across it.
func (f *fleet) assigned(a state.Assignment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.slices[a.Slice] {
		at := mark{a.Epoch, a.Generation}
		if at.before(h.seen) {
			continue
		}
		h.seen, h.want = at, &a
		f.later(h, obeyTakes, f.reconcile)
	}
}

// later does something to a host whose agent is still up by then, and the same.
func (f *fleet) later(h *host, after time.Duration, do func(*host)) {
	boot := h.boots
	f.clock.AfterFunc(f.clock.Now().Add(after), func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if h.up && h.boots == boot {
			do(h)
		}
	})
}

// allUp reports, with the lock held, whether all hosts of some slices are up, so
// that it is not them that a job waits for.
func (f *fleet) allUp(names []string) bool {
	for _, name := range names {
		hosts := f.slices[name]
		if len(hosts) == 0 || len(hosts) < hosts[0].spec.Hosts || slices.ContainsFunc(hosts, func(h *host) bool { return !h.up }) {
			return false
		}
	}
	return true
}

// isWithoutMachines reports whether a slice has none.
func (f *fleet) isWithoutMachines(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.slices[name]) == 0
}

// describe tells how the hosts of slices stand, for messages.
func (f *fleet) describe(names []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, name := range names {
		for _, h := range f.slices[name] {
			fmt.Fprintf(&b, "; %s/%d: on %t, up %t, bad %t, notice %q, generation %d of %d", name, h.machine.Worker, h.on, h.up, h.machine.Bad,
				h.report.Notice, h.report.Generation, h.seen.generation)
			if t := h.report.Task; t != nil {
				fmt.Fprintf(&b, ", attempt %d %s", t.Attempt, t.State)
			}
		}
	}
	return b.String()
}
