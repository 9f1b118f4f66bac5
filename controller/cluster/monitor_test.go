package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/joblogs"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// wrote puts what a task wrote into the store, in chunks.
func (r *rig) wrote(job string, attempt, task int, chunks ...string) {
	r.t.Helper()
	for i, chunk := range chunks {
		if _, err := r.store.Put(r.t.Context(), store.LogKey(job, attempt, task, i), []byte(chunk), store.Any); err != nil {
			r.t.Fatal(err)
		}
	}
}

// watched is what a monitor sent.
type watched struct {
	by      map[string]string // attempt/task
	order   []string          // of attempt/task, once each in a row
	cursors [][]byte
	job     *clusterapi.JobInfo
	err     error
}

func (r *rig) monitor(ctx context.Context, req *clusterapi.MonitorRequest) *watched {
	r.t.Helper()
	w := &watched{by: map[string]string{}}
	stream, err := r.client.Monitor(ctx, req)
	if err != nil {
		r.t.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return w
		}
		if err != nil {
			w.err = err
			return w
		}
		if m.GetJob() != nil {
			w.job = m.GetJob()
			continue
		}
		key := fmt.Sprintf("%d/%d", m.GetAttempt(), m.GetTask())
		w.by[key] += string(m.GetData())
		w.cursors = append(w.cursors, m.GetCursor())
		if len(w.order) == 0 || w.order[len(w.order)-1] != key {
			w.order = append(w.order, key)
		}
	}
}

// twice is a job of two tasks whose two attempts have failed.
func (r *rig) twice() string {
	r.t.Helper()
	request := command("twice")
	request.NumTasks, request.MaxRetriesFailure = 2, 1
	id := r.launch(r.user(), request)
	r.running(id)
	r.wrote(id, 1, 0, "one\ntwo\nthr", "ee\nfour")
	r.wrote(id, 1, 1, "first of 1\n")
	r.wrote(id, 2, 0, "again\n")
	r.wrote(id, 2, 1, "", "and again\n")
	r.End(id, schema.TaskFailed)
	r.until(id, "failed", func(j *state.Job) bool { return j.Status == schema.JobFailed && j.Attempt == 2 })
	return id
}

func TestMonitorOfTheStore(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	id := r.twice()
	whole := r.monitor(r.user(), &clusterapi.MonitorRequest{JobId: id})
	want := map[string]string{"1/0": "one\ntwo\nthree\nfour", "1/1": "first of 1\n", "2/0": "again\n", "2/1": "and again\n"}
	for key, text := range want {
		if whole.by[key] != text {
			t.Errorf("task %s: %q, want %q", key, whole.by[key], text)
		}
	}
	if whole.err != nil || whole.job.GetStatus() != clusterapi.JobStatus_JOB_STATUS_FAILED || whole.job.GetAttempt() != 2 {
		t.Errorf("it ended with %v, %v", whole.job, whole.err)
	}
	if last := whole.order[len(whole.order)-1]; !strings.HasPrefix(last, "2/") || !strings.HasPrefix(whole.order[0], "1/") {
		t.Errorf("attempts came as %q", whole.order)
	}
	all := 0
	for _, text := range want {
		all += len(text)
	}
	left := all
	for i, cursor := range whole.cursors {
		rest := r.monitor(r.user(), &clusterapi.MonitorRequest{JobId: id, After: cursor})
		n := 0
		for key, text := range rest.by {
			n += len(text)
			if !strings.HasSuffix(want[key], text) {
				t.Errorf("after message %d, task %s: %q", i, key, text)
			}
		}
		if n >= left || i == len(whole.cursors)-1 && n != 0 {
			t.Errorf("after message %d: %d bytes, before it %d", i, n, left)
		}
		left = n
	}
}

func TestMonitorOfParts(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	id := r.twice()
	no, yes := false, true
	attempt, task, third := int32(1), int32(0), int32(3)
	tests := []struct {
		name string
		req  *clusterapi.MonitorRequest
		want map[string]string
		code codes.Code
	}{
		{"an attempt", &clusterapi.MonitorRequest{Attempt: &attempt}, map[string]string{"1/0": "one\ntwo\nthree\nfour", "1/1": "first of 1\n"}, codes.OK},
		{"a task", &clusterapi.MonitorRequest{Task: &task}, map[string]string{"1/0": "one\ntwo\nthree\nfour", "2/0": "again\n"}, codes.OK},
		{"both", &clusterapi.MonitorRequest{Attempt: &attempt, Task: &task, Follow: &yes}, map[string]string{"1/0": "one\ntwo\nthree\nfour"}, codes.OK},
		{"the end", &clusterapi.MonitorRequest{Attempt: &attempt, Task: &task, Tail: 7}, map[string]string{"1/0": "four"}, codes.OK},
		{"what is there", &clusterapi.MonitorRequest{Follow: &no, Task: &task}, map[string]string{"1/0": "one\ntwo\nthree\nfour", "2/0": "again\n"}, codes.OK},
		{"no such attempt", &clusterapi.MonitorRequest{Attempt: &third}, nil, codes.NotFound},
		{"no such task", &clusterapi.MonitorRequest{Task: &third}, nil, codes.NotFound},
		{"no cursor", &clusterapi.MonitorRequest{After: []byte("x")}, nil, codes.InvalidArgument},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.JobId = id
			got := r.monitor(r.user(), tt.req)
			if status.Code(got.err) != tt.code {
				t.Fatalf("got %v, want %s", got.err, tt.code)
			}
			if len(got.by) != len(tt.want) {
				t.Errorf("tasks %v, want %v", got.by, tt.want)
			}
			for key, text := range tt.want {
				if got.by[key] != text {
					t.Errorf("task %s: %q, want %q", key, got.by[key], text)
				}
			}
		})
	}
	if got := r.monitor(r.user(), &clusterapi.MonitorRequest{JobId: "missing"}); status.Code(got.err) != codes.NotFound {
		t.Errorf("of a missing job: %v", got.err)
	}
}

func newTestHost() *testHost { return &testHost{grown: make(chan struct{})} }

// testHost is an agent: it has the logs of tasks, some of which break off.
type testHost struct {
	clusterapi.UnimplementedHostServer

	mu     sync.Mutex
	grown  chan struct{}
	log    []byte
	over   bool
	gap    int64 // by which the first offset of a stream is too high
	breaks bool  // the next stream ends with an error after what is there
	asked  []int64
}

func (h *testHost) write(text string, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log, h.over = append(h.log, text...), over
	close(h.grown)
	h.grown = make(chan struct{})
}

func (h *testHost) Logs(req *clusterapi.LogsRequest, stream grpc.ServerStreamingServer[clusterapi.LogsResponse]) error {
	at := req.GetOffset() + h.gap
	for began := true; ; began = false {
		h.mu.Lock()
		if began {
			h.asked = append(h.asked, at)
		}
		data, over, breaks, grown := bytes.Clone(h.log[min(at, int64(len(h.log))):]), h.over, h.breaks, h.grown
		h.mu.Unlock()
		if len(data) > 0 {
			if err := stream.Send(&clusterapi.LogsResponse{Offset: at, Data: data}); err != nil {
				return err
			}
			at += int64(len(data))
		}
		switch {
		case breaks:
			return status.Error(codes.Unavailable, "the host is lost")
		case over || !req.GetFollow():
			return nil
		}
		select {
		case <-grown:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// onHosts serves one agent for all hosts of the rig.
func (r *rig) onHosts(h clusterapi.HostServer) {
	l := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	clusterapi.RegisterHostServer(server, h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	r.t.Cleanup(func() {
		server.Stop()
		<-done
	})
	r.ServeAPI("host:1")
	r.server.Hosts = func(_ context.Context, report *state.HostReport) (joblogs.HostConn, error) {
		if report.API != "host:1" || report.Fingerprint != "f" {
			return nil, fmt.Errorf("no agent at %s", report.API)
		}
		return grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	}
}

// TestMonitorLive: lines come from the host while the task runs, then the end.
func TestMonitorLive(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	h := newTestHost()
	r.onHosts(h)
	id := r.launch(r.user(), command("a"))
	r.running(id)
	stream, err := r.client.Monitor(r.user(), &clusterapi.MonitorRequest{JobId: id})
	if err != nil {
		t.Fatal(err)
	}
	h.write("one\ntw", false)
	if m, err := stream.Recv(); err != nil || string(m.GetData()) != "one\n" {
		t.Fatalf("first = %v, %v", m, err)
	}
	h.write("o\n", false)
	if m, err := stream.Recv(); err != nil || string(m.GetData()) != "two\n" {
		t.Fatalf("second = %v, %v", m, err)
	}
	h.write("end", true)
	if m, err := stream.Recv(); err != nil || string(m.GetData()) != "end" {
		t.Fatalf("third = %v, %v", m, err)
	}
	r.End(id, schema.TaskSucceeded)
	m, err := stream.Recv()
	if err != nil || m.GetJob().GetStatus() != clusterapi.JobStatus_JOB_STATUS_SUCCEEDED {
		t.Fatalf("last = %v, %v", m, err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v", err)
	}
	if len(h.asked) != 1 {
		t.Errorf("the host was asked %d times", len(h.asked))
	}
}

// TestMonitorOfAHostThatComesBack: a stream that breaks off is resumed at the
// byte where it broke off.
func TestMonitorOfAHostThatComesBack(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	h := newTestHost()
	h.breaks = true
	r.onHosts(h)
	h.write("one\ntwo\nthr", false)
	id := r.launch(r.user(), command("a"))
	r.running(id)
	got := make(chan *watched, 1)
	go func() { got <- r.monitor(r.user(), &clusterapi.MonitorRequest{JobId: id}) }()
	asked := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.asked)
	}
	r.eventually("the host is asked", func() bool { return asked() > 0 })
	h.mu.Lock()
	h.breaks = false
	h.mu.Unlock()
	r.eventually("the host is asked again", func() bool { return asked() > 1 })
	h.write("ee\nfour", true)
	r.End(id, schema.TaskSucceeded)
	if w := <-got; w.err != nil || w.by["1/0"] != "one\ntwo\nthree\nfour" {
		t.Errorf("got %q, %v", w.by["1/0"], w.err)
	}
	if want := int64(len("one\ntwo\nthr")); h.asked[len(h.asked)-1] != want {
		t.Errorf("asked from bytes %v, want %d at last", h.asked, want)
	}
}

// TestMonitorRefusesGaps: a host that leaves bytes out is not believed.
func TestMonitorRefusesGaps(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	h := newTestHost()
	h.gap = 4
	r.onHosts(h)
	h.write("one\ntwo\n", true)
	id := r.launch(r.user(), command("a"))
	r.running(id)
	r.running(id)
	r.wrote(id, 1, 0, "one\ntwo\n")
	got := make(chan *watched, 1)
	go func() { got <- r.monitor(r.user(), &clusterapi.MonitorRequest{JobId: id}) }()
	r.eventually("the host is asked", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.asked) > 0
	})
	r.End(id, schema.TaskSucceeded)
	if w := <-got; w.err != nil || w.by["1/0"] != "one\ntwo\n" {
		t.Errorf("got %q, %v", w.by["1/0"], w.err)
	}
}

// TestMonitorOfALostHost: what the host cannot say any more, the store does,
// and nothing comes twice.
func TestMonitorOfALostHost(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	h := newTestHost()
	h.breaks = true
	r.onHosts(h)
	h.write("one\ntwo\nthr", false)
	id := r.launch(r.user(), command("a"))
	r.running(id)
	got := make(chan *watched, 1)
	go func() { got <- r.monitor(r.user(), &clusterapi.MonitorRequest{JobId: id}) }()
	r.eventually("the host is asked", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.asked) > 0
	})
	r.wrote(id, 1, 0, "one\ntwo\nthree\n", "four\n")
	r.End(id, schema.TaskSucceeded)
	if w := <-got; w.err != nil || w.by["1/0"] != "one\ntwo\nthree\nfour\n" || w.job.GetStatus() != clusterapi.JobStatus_JOB_STATUS_SUCCEEDED {
		t.Errorf("got %q, %v, %v", w.by["1/0"], w.job, w.err)
	}
}

// BenchmarkMonitor streams 64 MiB out of the store.
