package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// measured is a stack whose job root runs two tasks, of which one hosts an actor and is
// reported to use something; it is seen n times.
func measured(s *source, n int) {
	for i := range n {
		snap := running()
		snap.At = testTime.Add(time.Duration(i) * 10 * time.Second)
		for addr, j := range snap.Doc.Jobs {
			if j.ID != "id-root" {
				continue
			}
			j.Attempts[1].Tasks = []state.Task{{Slice: "s", State: schema.TaskRunning}, {Slice: "s", Host: 1, State: schema.TaskRunning}}
			duty := 0.9
			used := map[string]state.Usage{"s": {CPU: 1.5 + float64(i), Memory: 3 << 30, Duty: &duty, Actors: []state.ActorUsage{{Name: "greeter", Calls: 12, Errors: 1, P50: 0.002, P99: 0.5}}}}
			report := func(host int, used map[string]state.Usage) plan.Host {
				return plan.Host{HostReport: state.HostReport{Slice: "s", Host: host, HostUsage: state.HostUsage{Usage: used}, Task: &state.TaskReport{Job: addr, Attempt: 2, Task: host, State: schema.TaskRunning}}}
			}
			snap.Hosts = map[string][]plan.Host{"s": {report(0, used), report(1, nil)}}
		}
		s.put(snap)
	}
}

func greeter(context.Context, *state.Document) ([]actors.Actor, error) {
	root := schema.Address{Kind: schema.KindJob, Name: "root"}
	return []actors.Actor{
		{Name: "greeter", Namespace: "lab", Status: actors.Ready, Address: "10.0.0.1:9", Job: root, JobID: "id-root", Attempt: 2, Since: testTime},
		{Name: "waiter", Namespace: "lab", Status: actors.Restarting, Reason: "its job waits", Job: root, JobID: "id-root", Attempt: 2},
	}, nil
}

func TestUsage(t *testing.T) {
	from := newSource(nil)
	s := pageOf(t, nil, func(c *Config) { c.Source, c.Actors = from, greeter })
	for i := range 3 {
		measured(from, i+1)
		s.advance(from.Snapshot())
	}
	got := decode[UsageAnswer](t, s, "/api/v1/jobs/id-root/usage")
	if got.Attempt != 2 || len(got.Tasks) != 1 || got.Tasks[0].Task != 0 || got.Tasks[0].Step != 10 {
		t.Fatalf("got %+v", got)
	}
	of := got.Tasks[0]
	if len(of.CPU) != 3 || *of.CPU[0] != 1.5 || *of.CPU[2] != 3.5 || *of.Memory[1] != 3<<30 || *of.Duty[2] != 0.9 || *of.Calls[1] != 12 {
		t.Errorf("got %+v", of)
	}
	if former := decode[UsageAnswer](t, s, "/api/v1/jobs/id-root/usage?attempt=1"); len(former.Tasks) != 0 {
		t.Errorf("attempt 1 used %+v", former.Tasks)
	}
	for path, status := range map[string]int{"/api/v1/jobs/none/usage": http.StatusNotFound, "/api/v1/jobs/id-root/usage?attempt=x": http.StatusBadRequest} {
		if w := ask(s, path, nil); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	list := decode[ActorList](t, s, "/api/v1/actors")
	if len(list.Actors) != 2 || !list.Actors[0].Measured || list.Actors[0].Calls != 12 || list.Actors[0].P99 != 0.5 || list.Actors[1].Measured {
		t.Errorf("got %+v", list.Actors)
	}
	if some := decode[ActorList](t, s, "/api/v1/actors?q=restart"); len(some.Actors) != 1 || some.Actors[0].Name != "waiter" {
		t.Errorf("got %+v", some.Actors)
	}
}

// The page draws what tasks use, and how actors are called.
func TestUsageInABrowser(t *testing.T) {
	from := newSource(running())
	s := pageOf(t, nil, func(c *Config) { c.Source, c.Actors, c.Pace, c.Now = from, greeter, 20*time.Millisecond, time.Now })
	for i := range 3 {
		measured(from, i+1)
		s.advance(from.Snapshot())
	}
	b := openBrowser(t, s)
	b.open("#/jobs/id-root")
	b.await("a line for each kind", `document.querySelectorAll(".spark path").length === 4`)
	b.await("its words", `[...document.querySelectorAll(".spark svg")].map((el) => el.getAttribute("aria-label")).join(";").startsWith("CPU 3.50 cores, at most 3.50 cores")`)
	b.await("its columns", `[...document.querySelectorAll("th")].map((el) => el.textContent).join().includes("CPU,Memory,TPU busy,Calls")`)
	b.open("#/actors")
	b.await("calls and latencies", `document.querySelector(".actors tbody tr")?.innerText.replace(/\s+/g, " ").includes("12/s 1.0/s 0 2.0 ms 500 ms")`)
	if said := b.said(); len(said) > 0 {
		t.Errorf("the console says %q", strings.Join(said, "\n"))
	}
}
