package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/controller/usage"
	"github.com/fray-ml/fray/curves"
	"github.com/fray-ml/fray/state"
)

// UsageAnswer is the answer of /api/v1/jobs/{id}/usage: what the tasks of an attempt used
// over time, as far as this process has seen it.
type UsageAnswer struct {
	Attempt int         `json:"attempt"`
	Tasks   []TaskUsage `json:"tasks"` // those of which something is known, at most 256
}

// TaskUsage is what one task used. Its lists have an element for each step from Begin on,
// null where nothing is known.
type TaskUsage struct {
	Task   int        `json:"task"`
	Begin  time.Time  `json:"begin"`
	Step   float64    `json:"step_seconds"`
	CPU    []*float64 `json:"cpu"`    // processors
	Memory []*float64 `json:"memory"` // bytes
	// Duty is the part of the time in which its host's TPU chips computed; absent where
	// no host reports that.
	Duty []*float64 `json:"duty,omitempty"`
	// Calls are those of its actors in a second; absent without actors.
	Calls []*float64 `json:"calls,omitempty"`
}

// maxUsage is how many tasks an answer has.
const maxUsage = 256

func (s *Server) usage(w http.ResponseWriter, r *http.Request) {
	f := s.current.Load()
	e := f.look().find(r.PathValue("id"))
	if e == nil {
		fail(w, http.StatusNotFound, "there is no job \""+r.PathValue("id")+"\", or it was forgotten after its end")
		return
	}
	out := UsageAnswer{Attempt: e.job.Attempt, Tasks: []TaskUsage{}}
	if text := r.URL.Query().Get("attempt"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			fail(w, http.StatusBadRequest, "attempt: want a whole number of at least 0, not \""+text+"\"")
			return
		}
		out.Attempt = n
	}
	a := attemptOf(e.job, out.Attempt)
	if a == nil || e.job.Spec == nil {
		answer(w, http.StatusOK, out)
		return
	}
	for i := range a.Tasks {
		if len(out.Tasks) == maxUsage {
			break
		}
		if series, ok := s.used.Of(a.Tasks[i].Slice, a.Tasks[i].Host, e.job.Spec.Addr, a.Number); ok {
			out.Tasks = append(out.Tasks, taskUsage(i, series))
		}
	}
	answer(w, http.StatusOK, out)
}

func taskUsage(task int, s usage.Series) TaskUsage {
	n := len(s.Points)
	out := TaskUsage{Task: task, Begin: s.Begin, Step: s.Step.Seconds(), CPU: make([]*float64, n), Memory: make([]*float64, n)}
	duty, calls := make([]*float64, n), make([]*float64, n)
	for i, p := range s.Points {
		if p == nil {
			continue
		}
		out.CPU[i], out.Memory[i], duty[i] = &p.CPU, &p.Memory, p.Duty
		if p.Calls > 0 || len(s.Actors) > 0 {
			calls[i] = &p.Calls
		}
	}
	known := func(v *float64) bool { return v != nil }
	if slices.ContainsFunc(duty, known) {
		out.Duty = duty
	}
	if slices.ContainsFunc(calls, known) {
		out.Calls = calls
	}
	return out
}

// CurvesAnswer is the answer of /api/v1/jobs/{id}/curves: the metrics that lines of a job's first task have, over all
// attempts that are kept.
type CurvesAnswer struct {
	Curves []Curve `json:"curves"` // those of validation first, then by name
}

// Curve is the values of a metric. A step has one value.
type Curve struct {
	Name   string    `json:"name"`
	Steps  []int64   `json:"steps"` // rising
	Values []float64 `json:"values"`
}

func (s *Server) curves(w http.ResponseWriter, r *http.Request) {
	e := s.current.Load().look().find(r.PathValue("id"))
	if e == nil {
		fail(w, http.StatusNotFound, "there is no job \""+r.PathValue("id")+"\", or it was forgotten after its end")
		return
	}
	out := CurvesAnswer{Curves: []Curve{}}
	err := s.metrics.Of(r.Context(), e.job, func(set *curves.Set) {
		for _, name := range set.Names() {
			c := Curve{Name: name}
			for _, p := range set.Points(name) {
				c.Steps, c.Values = append(c.Steps, p.Step), append(c.Values, p.Value)
			}
			out.Curves = append(out.Curves, c)
		}
	})
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	answer(w, http.StatusOK, out)
}

// ActorList is the answer of /api/v1/actors.
type ActorList struct {
	Version uint64     `json:"version"`
	Actors  []ActorRow `json:"actors"` // by namespace and name
}

// ActorRow is an actor with its calls over some seconds, which are zero until its host has
// reported them.
type ActorRow struct {
	actors.Actor
	Measured bool    `json:"measured"`
	Calls    float64 `json:"calls_per_second"`
	Errors   float64 `json:"errors_per_second"`
	Pending  int     `json:"calls_pending"`
	Mean     float64 `json:"mean_seconds"` // from a call's arrival to its answer
	P50      float64 `json:"p50_seconds"`
	P99      float64 `json:"p99_seconds"`
}

func (s *Server) actors(w http.ResponseWriter, r *http.Request) {
	f := s.current.Load()
	out := ActorList{Version: f.version, Actors: []ActorRow{}}
	if s.cfg.Actors == nil {
		answer(w, http.StatusOK, out)
		return
	}
	found, err := s.cfg.Actors(r.Context(), f.snap.Doc)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	words := strings.Fields(strings.ToLower(r.URL.Query().Get("q")))
	for i := range found {
		row := ActorRow{Actor: found[i]}
		text := strings.ToLower(strings.Join([]string{row.Name, row.Namespace, row.Job.String(), row.Address, string(row.Status)}, " "))
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		if calls := s.callsOf(f.snap, &row.Actor); calls != nil {
			row.Measured, row.Calls, row.Errors, row.Pending = true, calls.Calls, calls.Errors, calls.Pending
			row.Mean, row.P50, row.P99 = calls.Mean, calls.P50, calls.P99
		}
		out.Actors = append(out.Actors, row)
	}
	slices.SortStableFunc(out.Actors, func(a, b ActorRow) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	answer(w, http.StatusOK, out)
}

// callsOf are the calls of a registered actor as its host reported them last, nil if it
// did not.
func (s *Server) callsOf(snap *Snapshot, a *actors.Actor) *state.ActorUsage {
	job := snap.Doc.Jobs[a.Job]
	if a.Status != actors.Ready || job == nil {
		return nil
	}
	attempt := attemptOf(job, a.Attempt)
	if attempt == nil || a.Task >= len(attempt.Tasks) || a.Task < 0 {
		return nil
	}
	series, ok := s.used.Of(attempt.Tasks[a.Task].Slice, attempt.Tasks[a.Task].Host, a.Job, a.Attempt)
	i := slices.IndexFunc(series.Actors, func(u state.ActorUsage) bool { return u.Name == a.Name })
	if !ok || i < 0 {
		return nil
	}
	return &series.Actors[i]
}
