package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// miniature is a desk over the real plan, in a world whose slices come up at
// once and whose tasks run until they are told how to end.
type miniature struct {
	mu      sync.Mutex
	now     time.Time
	doc     *state.Document
	view    *access.View
	changed chan struct{}
	asked   int           // how often somebody began to wait for a view
	refuses error         // what Do answers, nil: it changes the state
	deaf    bool          // hosts do not hear of new assignments
	gate    chan struct{} // closed to let changes be seen; nil: they are

	slices      map[string]schema.SliceSpec
	assignments map[string]plan.Assigned
	reports     map[string][]state.HostReport // by slice
	ends        map[string]schema.TaskState   // how the tasks of a job end, by id
	written     store.Generation
	seq         uint64
	api         string // what hosts report
}

var _ access.State = (*miniature)(nil)

func newMiniature(desired schema.Desired) *miniature {
	m := &miniature{
		now:         time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC),
		changed:     make(chan struct{}),
		slices:      map[string]schema.SliceSpec{},
		assignments: map[string]plan.Assigned{},
		reports:     map[string][]state.HostReport{},
		ends:        map[string]schema.TaskState{},
	}
	m.doc = change.Accepted(&state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnopqrstuvwxyz", Revision: 1}, desired)
	m.settle()
	return m
}

func (m *miniature) View() *access.View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

func (m *miniature) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return m.changed
}

func (m *miniature) waits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// Do returns before the change is seen, as the loop does.
func (m *miniature) Do(_ context.Context, change access.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses != nil {
		return m.refuses
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
			m.settle()
		}(m.gate)
	}
	return nil
}

// end has the tasks of a job end.
func (m *miniature) end(id string, how schema.TaskState) {
	m.mu.Lock()
	m.ends[id] = how
	m.mu.Unlock()
	m.settle()
}

// settle steps until nothing happens any more.
func (m *miniature) settle() {
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
func (m *miniature) skipToRetry() bool {
	for _, j := range m.doc.Jobs {
		if !j.Status.Ended() && !j.Running() && j.RetryAt.After(m.now) {
			m.now = j.RetryAt
			return true
		}
	}
	return false
}

func (m *miniature) carryOut(a plan.Action) {
	name := a.Slice.Name
	switch a.Verb {
	case plan.CreateSlice, plan.MendSlice, plan.UpdateSlice:
		m.slices[name] = a.Slice
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

func (m *miniature) observe() *plan.Observed {
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

func (m *miniature) hosts() map[string][]plan.Host {
	hosts := map[string][]plan.Host{}
	for name, reports := range m.reports {
		for i := range reports {
			hosts[name] = append(hosts[name], plan.Host{HostReport: reports[i]})
		}
	}
	return hosts
}

// report brings a host's report up to date with its assignment.
func (m *miniature) report(slice string, host int) {
	m.seq++
	r := &m.reports[slice][host]
	was := r.Task
	*r = state.HostReport{
		Slice: slice, Host: host, Boot: "b", Seq: m.seq, Version: "dev", PID: 1, API: m.api, Fingerprint: "f",
		Address: "10.0.0." + strconv.Itoa(host+1), CoordinatorPort: 1, MegascalePort: 2, Task: was,
	}
	a, assigned := m.assignments[slice]
	if !assigned || m.deaf {
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

// rig is the service on a real gRPC connection over a miniature.
type rig struct {
	*miniature

	t      *testing.T
	store  *storetest.Memory
	server *clusterServer
	client clusterapi.ClusterClient
}

func newRig(t *testing.T, desired schema.Desired) *rig {
	t.Helper()
	r := &rig{miniature: newMiniature(desired), t: t, store: storetest.NewMemory()}
	r.server = newCluster(clusterConfig{State: r.miniature, Store: r.store, Log: slog.New(slog.DiscardHandler)})
	l := bufconn.Listen(1 << 20)
	conn := r.serve(l, "passthrough:///bufconn", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	r.client = clusterapi.NewClusterClient(conn)
	return r
}

// serve serves on a listener until the test ends, and connects to it.
func (r *rig) serve(l net.Listener, target string, options ...grpc.DialOption) *grpc.ClientConn {
	r.t.Helper()
	server := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(r.authenticated(ctx), req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, testStream{ss, r.authenticated(ss.Context())})
		}),
	)
	clusterapi.RegisterClusterServer(server, r.server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	r.t.Cleanup(func() {
		server.Stop()
		<-done
	})
	conn, err := grpc.NewClient(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

type testStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s testStream) Context() context.Context { return s.ctx }

const callerHeader = "test-caller"

// authenticated is what the real server's interceptors do.
func (r *rig) authenticated(ctx context.Context) context.Context {
	given, _ := metadata.FromIncomingContext(ctx)
	kind, name, _ := strings.Cut(strings.Join(given.Get(callerHeader), ""), ":")
	switch kind {
	case "user":
		return caller.With(ctx, caller.Caller{Kind: caller.User, User: name})
	case "job":
		id, attempt, _ := strings.Cut(name, "#")
		n, err := strconv.Atoi(attempt)
		j := jobs.NewTable(r.View().Doc).ByID(id)
		if err != nil || j == nil {
			return ctx
		}
		return caller.With(ctx, caller.Caller{Kind: caller.Job, JobID: id, Attempt: n, Namespace: j.Spec.Namespace, User: j.Spec.User})
	}
	return ctx
}

// user and as make contexts of calls, of a user and of the present attempt of a job.
func (r *rig) user() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	r.t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, callerHeader, "user:ada")
}

func (r *rig) as(id string) context.Context {
	r.t.Helper()
	j := jobs.NewTable(r.View().Doc).ByID(id)
	if j == nil {
		r.t.Fatalf("there is no job %s", id)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	r.t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, callerHeader, fmt.Sprintf("job:%s#%d", id, j.Attempt))
}

// launch launches and fails the test where that is refused.
func (r *rig) launch(ctx context.Context, request *clusterapi.JobRequest) string {
	r.t.Helper()
	answer, err := r.client.Launch(ctx, &clusterapi.LaunchRequest{Request: request})
	if err != nil {
		r.t.Fatalf("launch %s: %v", request.GetName(), err)
	}
	return answer.GetJobId()
}

// until waits for a view in which something holds of a job.
func (r *rig) until(id, what string, holds func(*state.Job) bool) *state.Job {
	r.t.Helper()
	var last *state.Job
	err := access.Await(r.user(), r.server.State, func(v *access.View) bool {
		last = jobs.NewTable(v.Doc).ByID(id)
		return last != nil && holds(last)
	})
	if err != nil {
		r.t.Fatalf("job %s is not %s: %v; it is %+v", id, what, err, last)
	}
	return last
}

// eventually polls for what nobody tells of.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	ctx, tick := r.user(), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			r.t.Fatalf("not so in time: %s", what)
		case <-tick.C:
		}
	}
}

func (r *rig) running(id string) *state.Job {
	r.t.Helper()
	return r.until(id, "running", func(j *state.Job) bool { return j.Status == schema.JobRunning })
}

// command is a request for a job of one core.
func command(name string) *clusterapi.JobRequest {
	return &clusterapi.JobRequest{
		Name:       name,
		Entrypoint: &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Command{Command: &clusterapi.Command{Words: []string{"sleep", "9"}}}},
	}
}

func localStack() schema.Desired {
	return schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal, Slices: 10}}}
}
