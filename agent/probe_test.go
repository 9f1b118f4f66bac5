package agent

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestHealthOfARunningTask(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusServiceUnavailable)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/healthz" {
			t.Errorf("asked for %s", q.URL.Path)
		}
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	spec := job("exec sleep 1000")
	spec.HealthCheck = &schema.Health{
		HTTP: "/healthz", Port: port, Threshold: 3, StartPeriod: schema.Duration(time.Minute),
		Interval: schema.Duration(50 * time.Millisecond), Timeout: schema.Duration(time.Second),
	}
	gen := r.assign(&spec)
	health := func(want state.HealthState) func(state.HostReport) bool {
		return func(h state.HostReport) bool {
			return h.Task != nil && h.Task.Generation == gen && h.Task.Health == want
		}
	}
	if h := r.await("starting", health(state.HealthStarting)); h.Task.Ready() {
		t.Error("a starting task is ready")
	}
	status.Store(http.StatusOK)
	if h := r.await("healthy", health(state.HealthHealthy)); !h.Task.Ready() {
		t.Error("a healthy task is not ready")
	}
	r.killAgent()
	r.startAgent()
	r.await("healthy under the next agent", func(h state.HostReport) bool {
		return h.PID == r.agent.Process.Pid && health(state.HealthHealthy)(h)
	})
	status.Store(http.StatusServiceUnavailable)
	task := r.awaitTask(gen, schema.TaskFailed)
	want := "health check failed 3 times: GET " + server.URL + "/healthz: 503"
	if task.Reason != want || task.Health != state.HealthUnhealthy {
		t.Errorf("task is %+v, want reason %q", task, want)
	}
}

func TestOtherHealthChecks(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", rigAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	r := newRig(t)
	for _, test := range []struct {
		name   string
		health schema.Health
		reason string // "": healthy
	}{
		{"tcp", schema.Health{TCP: true, Port: port}, ""},
		{"exec in the task's environment", schema.Health{Exec: []string{"sh", "-c", `[ -n "$FRAY_TASK_INDEX" ] && [ -e here ]`}}, ""},
		{"exec fails", schema.Health{Exec: []string{"sh", "-c", "echo broken; exit 2"}}, "health check failed once: sh: exit status 2: broken"},
		{"exec hangs", schema.Health{Exec: []string{"sleep", "1000"}, Timeout: schema.Duration(300 * time.Millisecond)}, "health check failed once: sleep: no answer in time"},
		{"unknown port", schema.Health{TCP: true, Port: "nope"}, `health check failed once: the job has no port "nope"`},
		{"no listener", schema.Health{TCP: true, Port: "1"}, "health check failed once: connect to 127.0.0.1:1: connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			spec := job("touch here; exec sleep 1000")
			test.health.Interval = schema.Duration(50 * time.Millisecond)
			if test.health.Timeout == 0 {
				test.health.Timeout = schema.Duration(time.Minute)
			}
			test.health.Threshold = 1
			if test.reason == "" { // the script may take a moment to come to what is checked
				test.health.StartPeriod = schema.Duration(time.Minute)
			}
			spec.HealthCheck = &test.health
			gen := r.assign(&spec)
			if test.reason == "" {
				r.await("healthy", func(h state.HostReport) bool {
					return h.Task != nil && h.Task.Generation == gen && h.Task.Ready()
				})
				return
			}
			if task := r.awaitTask(gen, schema.TaskFailed); task.Reason != test.reason {
				t.Errorf("reason is %q, want %q", task.Reason, test.reason)
			}
		})
	}
	r.t = t
}
