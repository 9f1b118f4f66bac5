package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// source is one that tests move on by hand.
type source struct {
	mu      sync.Mutex
	snap    *Snapshot
	changed chan struct{}
}

func newSource(snap *Snapshot) *source { return &source{snap: snap, changed: make(chan struct{})} }

func (s *source) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap
}

func (s *source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *source) put(snap *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap = snap
	close(s.changed)
	s.changed = make(chan struct{})
}

// memory is what tasks wrote, the first text of a task at testTime and each of the others
// a second later.
type memory struct {
	mu    sync.Mutex
	text  map[LogStream]string
	times map[LogStream]logtime.Index
	err   error
	most  int // bytes of one read; 0: all
}

func (m *memory) write(task LogStream, text string) {
	m.mu.Lock()
	at := testTime.Add(time.Duration(len(m.times[task])) * time.Second)
	m.mu.Unlock()
	m.writeAt(task, text, at)
}

func (m *memory) writeAt(task LogStream, text string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.text == nil {
		m.text, m.times = map[LogStream]string{}, map[LogStream]logtime.Index{}
	}
	m.times[task] = append(m.times[task], logtime.Mark{Offset: int64(len(m.text[task])), At: at})
	m.text[task] += text
}

func (m *memory) Read(_ context.Context, task LogStream, from int64) (store.LogPart, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.text[task]
	size := int64(len(text))
	if from < 0 {
		from = max(0, size+from)
	}
	from = min(from, size)
	to := size
	if m.most > 0 {
		to = min(size, from+int64(m.most))
	}
	return store.LogPart{Data: []byte(text[from:to]), Offset: from, Times: m.times[task]}, m.err
}

// pageOf is a server on loopback that shows one snapshot at testTime.
func pageOf(t *testing.T, snap *Snapshot, change func(*Config)) *Server {
	t.Helper()
	cfg := Config{
		Source: newSource(snap), Logs: &memory{}, Loopback: true, Version: "1.2.3", Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return testTime },
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(h http.Handler, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8000"+path, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// world is a small one, which a real plan looks after: a provider whose slices
// come up at once, and hosts that do what they are told.
type world struct {
	t       *testing.T
	now     time.Time
	doc     *state.Document
	desired schema.Desired
	slices  map[string]schema.SliceSpec
	orders  map[string]plan.Assigned
	writes  store.Generation
	ends    map[schema.Address]schema.TaskState // how tasks end, "" while they run
}

func newWorld(t *testing.T, desired schema.Desired) *world {
	w := &world{
		t: t, now: testTime.Add(-time.Hour), desired: desired, slices: map[string]schema.SliceSpec{}, orders: map[string]plan.Assigned{},
		ends: map[schema.Address]schema.TaskState{},
	}
	w.doc = change.Accepted(&state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnopqrst"}, desired)
	return w
}

// steps has the loop step n times, a second apart, and returns what is seen then.
func (w *world) steps(n int) *Snapshot {
	var snap *Snapshot
	for range n {
		w.now = w.now.Add(time.Second)
		obs := w.observe()
		p := reconcile.Diff(&w.desired, w.doc, obs, w.now)
		w.doc = p.Next
		for _, a := range p.Actions {
			w.act(a)
			w.doc = capacity.Folded(w.doc, a, nil, w.now)
		}
		snap = &Snapshot{Leads: true, View: access.View{
			Doc: w.doc.Clone(), Wanted: &w.desired, Plan: p, Hosts: obs.Hosts, Attended: obs.Monitored, Inventories: obs.Inventories,
			Lease: store.Lease{Epoch: 1, Host: "here", User: "ada"}, At: w.now, Took: time.Millisecond,
		}}
	}
	return snap
}

func (w *world) observe() *plan.Observed {
	obs := &plan.Observed{Inventories: map[schema.ProviderName]schema.Inventory{}, Assignments: w.orders, Hosts: map[string][]plan.Host{}}
	var inv schema.Inventory
	for name, spec := range w.slices {
		inv.Slices = append(inv.Slices, schema.SliceStatus{Spec: spec, Phase: schema.SliceReady, CreatedAt: w.now})
		report := state.HostReport{Slice: name, Boot: "b", Seq: uint64(w.now.Unix()), Address: "127.0.0.2", CoordinatorPort: 1, MegascalePort: 2}
		if order, ok := w.orders[name]; ok {
			report.Epoch, report.Generation = order.Epoch, order.Generation
			if run := order.Run; run != nil {
				task := &state.TaskReport{Job: run.Job, Attempt: run.Attempt, Generation: order.Generation, State: schema.TaskRunning, Started: true}
				if end := w.ends[run.Job]; end != "" {
					code := 1
					task.State, task.ExitCode, task.Reason, task.Tail = end, &code, "exited with code 1", []string{"the last words"}
				}
				report.Task = task
			}
		}
		obs.Hosts[name] = []plan.Host{{HostReport: report}}
	}
	obs.Inventories[schema.ProviderLocal] = inv
	obs.Confirmations = map[string]plan.Confirmation{}
	for name := range w.doc.Slices { // each is read directly, as those in doubt are
		if _, there := w.slices[name]; !there {
			obs.Confirmations[name] = plan.Confirmation{Answer: snapshot.AnswerGone, ReadAt: w.now}
		}
	}
	return obs
}

func (w *world) act(a plan.Action) {
	switch a.Verb {
	case plan.CreateSlice, plan.RepairSlice, plan.UpdateSlice:
		w.slices[a.Slice.Name] = *a.Slice
	case plan.DeleteSlice:
		delete(w.slices, a.Slice.Name)
	case plan.Assign:
		w.writes++
		order := *a.Assignment
		order.Epoch = 1
		w.orders[a.Slice.Name] = plan.Assigned{Assignment: order, Object: w.writes}
	case plan.ForgetSlice:
		delete(w.orders, a.Slice.Name)
	}
}

func localJob(name string, change func(*schema.Job)) schema.Job {
	j := schema.Job{
		Addr: schema.Address{Kind: schema.KindJob, Name: name}, Namespace: "lab", Command: []schema.Text{schema.Plain("true")},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
	}
	if change != nil {
		change(&j)
	}
	return j
}

func namesOf(rows []JobRow) string {
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = strings.Repeat(">", rows[i].Depth) + rows[i].Name
		if rows[i].Context {
			names[i] = "(" + names[i] + ")"
		}
	}
	return strings.Join(names, " ")
}

var errRefused = errors.New("no such token")

func leaseOf(epoch uint64) store.Lease { return store.Lease{Epoch: epoch} }
