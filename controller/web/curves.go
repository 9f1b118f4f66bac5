package web

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/fray-ml/fray/curves"
	"github.com/fray-ml/fray/state"
)

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
	set, err := s.metrics.of(r.Context(), e.job)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	answer(w, http.StatusOK, set)
}

// maxMetricJobs is how many jobs' metrics are kept, those that were asked for last.
const maxMetricJobs = 32

// metricReader reads metrics of jobs' logs, each part of a log once. It is safe for concurrent use.
type metricReader struct {
	logs Logs

	mu   sync.Mutex
	jobs []*jobMetrics // the last one was asked for last
}

// jobMetrics is what was read of one job.
type jobMetrics struct {
	id string

	mu       sync.Mutex
	set      curves.Set
	attempts map[int]*attemptMetrics
}

// attemptMetrics is how far the log of an attempt was read.
type attemptMetrics struct {
	tailed
	calm int // readings in a row, since its end, that found nothing more
}

// of is the metrics of a job as its log has them now.
func (m *metricReader) of(ctx context.Context, job *state.Job) (CurvesAnswer, error) {
	known := m.job(job.ID)
	known.mu.Lock()
	defer known.mu.Unlock()
	for i := range job.Attempts {
		if err := known.read(ctx, m.logs, &job.Attempts[i]); err != nil {
			return CurvesAnswer{}, err
		}
	}
	out := CurvesAnswer{Curves: []Curve{}}
	for _, name := range known.set.Names() {
		c := Curve{Name: name}
		for _, p := range known.set.Points(name) {
			c.Steps, c.Values = append(c.Steps, p.Step), append(c.Values, p.Value)
		}
		out.Curves = append(out.Curves, c)
	}
	return out, nil
}

func (m *metricReader) job(id string) *jobMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.jobs, func(j *jobMetrics) bool { return j.id == id })
	var found *jobMetrics
	if i >= 0 {
		found = m.jobs[i]
		m.jobs = slices.Delete(m.jobs, i, i+1)
	} else {
		found = &jobMetrics{id: id, attempts: map[int]*attemptMetrics{}}
	}
	m.jobs = append(m.jobs, found)
	m.jobs = slices.Delete(m.jobs, 0, max(0, len(m.jobs)-maxMetricJobs))
	return found
}

// read takes in what an attempt wrote since it was read before.
func (j *jobMetrics) read(ctx context.Context, logs Logs, attempt *state.Attempt) error {
	of := j.attempts[attempt.Number]
	if of == nil {
		of = &attemptMetrics{tailed: tailed{next: -maxTail}}
		j.attempts[attempt.Number] = of
	}
	for of.calm < settled {
		read, err := logs.Read(ctx, LogStream{Job: j.id, Attempt: attempt.Number}, of.next)
		if err != nil {
			return err
		}
		if len(read.Data) == 0 {
			if attempt.Outcome != "" {
				of.calm++
			}
			return nil
		}
		n := of.take(read)
		for line := range bytes.Lines(of.part[:n]) {
			j.set.Add(string(line))
		}
		of.part = bytes.Clone(of.part[n:min(len(of.part), n+maxMetricLine)])
		of.calm = 0
	}
	return nil
}

// maxMetricLine is the longest beginning of a line that is kept until its end comes, in bytes.
const maxMetricLine = 64 << 10
