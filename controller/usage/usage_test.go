package usage

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var begin = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func job(name string) schema.Address { return schema.Address{Kind: schema.KindJob, Name: name} }

func runs(name string, attempt int, used map[string]state.Usage) plan.Host {
	return plan.Host{HostReport: state.HostReport{Task: &state.TaskReport{Job: job(name), Attempt: attempt, State: schema.TaskRunning}, HostUsage: state.HostUsage{Usage: used}}}
}

// However long a task runs, its points are few and cover all of it; their means are those
// of the reports.
func TestLongRuns(t *testing.T) {
	var r Recorder
	const steps = 5000
	duty := 0.5
	for i := range steps {
		used := map[string]state.Usage{"s": {CPU: float64(i), Memory: 7 << 30, Duty: &duty}}
		r.Observe(map[string][]plan.Host{"s": {runs("a", 1, used)}}, begin.Add(time.Duration(i)*FirstStep))
	}
	s, ok := r.Of("s", 0, job("a"), 1)
	if !ok || len(s.Points) > maxPoints || len(s.Points) < maxPoints/2 || s.Begin != begin {
		t.Fatalf("%d points since %v", len(s.Points), s.Begin)
	}
	if end := s.Begin.Add(time.Duration(len(s.Points)) * s.Step); end.Before(begin.Add((steps-1)*FirstStep)) || end.After(begin.Add(steps*FirstStep+s.Step)) {
		t.Errorf("they end at %v", end)
	}
	per := float64(s.Step / FirstStep)
	for i, p := range s.Points[:len(s.Points)-1] {
		if want := float64(i)*per + (per-1)/2; p.CPU != want || p.Memory != 7<<30 || *p.Duty != 0.5 {
			t.Fatalf("point %d is %+v, want %g processors", i, p, want)
		}
	}
}

// What is not reported is a gap, and another attempt begins anew.
func TestGapsAndAttempts(t *testing.T) {
	var r Recorder
	at := func(step int, attempt int, used map[string]state.Usage) {
		r.Observe(map[string][]plan.Host{"s": {runs("a", attempt, used)}}, begin.Add(time.Duration(step)*FirstStep))
	}
	one := map[string]state.Usage{"s": {CPU: 1}}
	at(0, 1, one)
	at(1, 1, nil)
	at(2, 1, one)
	at(3, 1, nil)
	at(4, 1, nil)
	at(5, 1, one)
	s, _ := r.Of("s", 0, job("a"), 1)
	var got []bool
	for _, p := range s.Points {
		got = append(got, p != nil)
	}
	if fmt.Sprint(got) != "[true true true false false true]" { // one that is late is no gap
		t.Errorf("points: %v", got)
	}
	at(6, 2, one)
	if _, ok := r.Of("s", 0, job("a"), 1); ok {
		t.Error("a former attempt is still there")
	}
	if s, ok := r.Of("s", 0, job("a"), 2); !ok || len(s.Points) != 1 {
		t.Errorf("of the next attempt: %+v, %v", s, ok)
	}
	r.Observe(nil, begin.Add(time.Hour))
	if len(r.tasks) > 0 {
		t.Errorf("%d tasks are kept of slices that are gone", len(r.tasks))
	}
}

// A host reports for its packed tasks, too.
func TestPackedTasks(t *testing.T) {
	var r Recorder
	r.Observe(map[string][]plan.Host{
		"host":   {runs("a", 1, map[string]state.Usage{"host": {CPU: 1}, "packed": {CPU: 2, Actors: []state.ActorUsage{{Name: "x", Calls: 9}}}})},
		"packed": {runs("b", 3, nil)},
	}, begin)
	s, ok := r.Of("packed", 0, job("b"), 3)
	if !ok || s.Points[0].CPU != 2 || s.Points[0].Calls != 9 || s.Actors[0].Name != "x" {
		t.Errorf("got %+v, %v", s, ok)
	}
}

func BenchmarkObserve(b *testing.B) {
	hosts := map[string][]plan.Host{}
	for i := range 10_000 {
		name := fmt.Sprint("slice-", i)
		hosts[name] = []plan.Host{runs(name, 1, map[string]state.Usage{name: {CPU: 1, Memory: 1 << 30}})}
	}
	var r Recorder
	now := begin
	for b.Loop() {
		now = now.Add(FirstStep)
		r.Observe(hosts, now)
	}
}
