package accesstest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Simulation is state access over the real plan: slices come up at once, and tasks
// run until the test ends them.
type Simulation struct {
	mu      sync.Mutex
	now     time.Time
	doc     *state.Document
	view    *access.View
	changed chan struct{}
	asked   int           // how often a caller began to wait for a view
	rejects error         // what Do answers, nil: it changes the state
	ignore  bool          // hosts read no new assignments
	gate    chan struct{} // closed to let changes be seen; nil: they are

	slices      map[string]schema.SliceSpec
	assignments map[string]plan.Assigned
	reports     map[string][]state.HostReport // by slice
	ends        map[string]schema.TaskState   // how the tasks of a job end, by id
	written     store.Generation
	seq         uint64
	api         string // what hosts report
}

var _ access.State = (*Simulation)(nil)

// NewSimulation accepts a configuration and settles.
func NewSimulation(desired schema.Desired) *Simulation {
	m := &Simulation{
		now:         time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC),
		changed:     make(chan struct{}),
		slices:      map[string]schema.SliceSpec{},
		assignments: map[string]plan.Assigned{},
		reports:     map[string][]state.HostReport{},
		ends:        map[string]schema.TaskState{},
	}
	m.doc = change.Accepted(&state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnopqrstuvwxyz", Revision: 1}, desired)
	m.Settle()
	return m
}

// View is what the last step left.
func (m *Simulation) View() *access.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

// Changed is closed by the next step.
func (m *Simulation) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return m.changed
}

// Waits is how often a caller began to wait for a view.
func (m *Simulation) Waits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// Do returns before the change is seen, as the loop does.
func (m *Simulation) Do(_ context.Context, change access.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rejects != nil {
		return m.rejects
	}
	next, err := change(m.doc, m.now)
	if err != nil {
		return err
	}
	if next != m.doc {
		m.doc = next
		go func(gate chan struct{}) {
			if gate != nil {
				<-gate
			}
			m.Settle()
		}(m.gate)
	}
	return nil
}

// End has the tasks of a job end.
func (m *Simulation) End(id string, how schema.TaskState) {
	m.mu.Lock()
	m.ends[id] = how
	m.mu.Unlock()
	m.Settle()
}

// Settle steps until nothing happens any more.
func (m *Simulation) Settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 100 {
		m.now = m.now.Add(time.Second)
		p := reconcile.Diff(&m.doc.Desired, m.doc, m.observe(), m.now)
		calm := p.Next == m.doc && len(p.Actions) == 0
		m.doc = p.Next
		for _, a := range p.Actions {
			m.carryOut(a)
			m.doc = capacity.Folded(m.doc, a, nil, m.now)
		}
		m.view = &access.View{Doc: m.doc, Wanted: launch.Wanted(&m.doc.Desired, m.doc, m.now), Plan: p, Hosts: m.hosts(), At: m.now}
		close(m.changed)
		m.changed = make(chan struct{})
		if calm && !m.skipToRetry() {
			return
		}
	}
}

// skipToRetry lets the time pass that a job waits before it is tried again, if one does.
func (m *Simulation) skipToRetry() bool {
	for _, j := range m.doc.Jobs {
		if !j.Status.Ended() && !j.Running() && j.RetryAt.After(m.now) {
			m.now = j.RetryAt
			return true
		}
	}
	return false
}

func (m *Simulation) carryOut(a plan.Action) {
	name := a.Slice.Name
	switch a.Verb {
	case plan.CreateSlice, plan.RepairSlice, plan.UpdateSlice:
		m.slices[name] = *a.Slice
	case plan.DeleteSlice:
		delete(m.slices, name)
		delete(m.reports, name)
	case plan.Assign:
		m.written++
		m.assignments[name] = plan.Assigned{Assignment: *a.Assignment, Object: m.written}
	case plan.ForgetSlice:
		delete(m.assignments, name)
	}
}

func (m *Simulation) observe() *plan.Observed {
	inventories := map[schema.ProviderName]schema.Inventory{}
	for _, provider := range []schema.ProviderName{schema.ProviderLocal, schema.ProviderGCP} {
		var inv schema.Inventory
		for _, name := range slices.Sorted(maps.Keys(m.slices)) {
			if spec := m.slices[name]; spec.Provider == provider {
				inv.Slices = append(inv.Slices, schema.SliceStatus{Spec: spec, Phase: schema.SliceReady, CreatedAt: m.now})
			}
		}
		inventories[provider] = inv
	}
	for name, spec := range m.slices {
		if m.reports[name] == nil {
			m.reports[name] = make([]state.HostReport, spec.Hosts)
		}
		for n := range m.reports[name] {
			m.report(name, n)
		}
	}
	confirmed := map[string]plan.Confirmation{}
	for name := range m.doc.Slices { // each is read directly, as those in doubt are
		if _, there := m.slices[name]; !there {
			confirmed[name] = plan.Confirmation{Answer: snapshot.AnswerGone, ReadAt: m.now}
		}
	}
	return &plan.Observed{Inventories: inventories, Assignments: maps.Clone(m.assignments), Hosts: m.hosts(), Confirmations: confirmed}
}

func (m *Simulation) hosts() map[string][]plan.Host {
	hosts := map[string][]plan.Host{}
	for name, reports := range m.reports {
		for i := range reports {
			hosts[name] = append(hosts[name], plan.Host{HostReport: reports[i]})
		}
	}
	return hosts
}

// report brings a host's report up to date with its assignment.
func (m *Simulation) report(slice string, host int) {
	m.seq++
	r := &m.reports[slice][host]
	was := r.Task
	*r = state.HostReport{
		Slice: slice, Host: host, Boot: "b", Seq: m.seq, Version: "dev", PID: 1, API: m.api, Fingerprint: "f",
		Address: "10.0.0." + strconv.Itoa(host+1), CoordinatorPort: 1, MegascalePort: 2, Task: was,
	}
	a, assigned := m.assignments[slice]
	if !assigned || m.ignore {
		return
	}
	r.Epoch, r.Generation = a.Epoch, a.Generation
	switch {
	case a.Run == nil:
		if was != nil && !was.State.Ended() {
			ended := *was
			ended.State, ended.EndedAt = schema.TaskKilled, m.now
			r.Task = &ended
		}
		return
	case was == nil || was.Generation != a.Generation:
		task := slices.IndexFunc(a.Run.Peers, func(p state.Peer) bool { return p.Slice == slice && p.Host == host })
		r.Task = &state.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, Task: task, State: schema.TaskRunning, StartedAt: m.now, Started: true}
	}
	if how := m.ends[a.Run.JobID]; how != "" && !r.Task.State.Ended() {
		ended := *r.Task
		ended.State, ended.EndedAt, ended.Reason = how, m.now, "as the test says"
		r.Task = &ended
	}
}

// RejectChanges has Do answer an error; nil: it changes the state again.
func (m *Simulation) RejectChanges(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rejects = err
}

// DelayViews has the effects of changes seen only once gate is closed.
func (m *Simulation) DelayViews(gate chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = gate
}

// IgnoreAssignments has hosts read no new assignments.
func (m *Simulation) IgnoreAssignments() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ignore = true
}

// ServeAPI has hosts report an address of their API.
func (m *Simulation) ServeAPI(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.api = address
}

// LocalStack is a configuration of slices on this machine.
func LocalStack() schema.Desired {
	return schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal, Slices: 10}}}
}

// Unstep makes the view that of a loop which has not stepped yet.
func (m *Simulation) Unstep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.view = &access.View{Doc: &state.Document{}, Wanted: &schema.Desired{}, Plan: &plan.Plan{}}
}
