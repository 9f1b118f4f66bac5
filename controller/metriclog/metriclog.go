// Package metriclog keeps in memory the metrics that lines of jobs' logs have, of the jobs that were asked for last. Each part
// of a log is read once. It leaves out where logs are, and saves nothing.
//
// Start with [Reader].
package metriclog

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/fray-ml/fray/curves"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

const (
	// most is how many bytes of an attempt's log are read, the last ones, when a job is asked for first.
	most = 4 << 20
	// longest is the longest beginning of a line that is kept until its end comes, in bytes.
	longest = 64 << 10
	// keptJobs is how many jobs' metrics are kept.
	keptJobs = 32
	// settled is how often the log of an attempt that has ended is found without more before that counts as its end.
	settled = 8
)

// Reader reads metrics of jobs' logs. It is safe for concurrent use.
type Reader struct {
	// Read returns what the first task of an attempt of a job has written: from a byte on, or from the beginning of its last
	// -from bytes.
	Read func(ctx context.Context, job string, attempt int, from int64) (store.LogPart, error)

	mu   sync.Mutex
	jobs []*metrics // the last one was asked for last
}

// metrics is what was read of one job.
type metrics struct {
	id string

	mu       sync.Mutex
	set      curves.Set
	attempts map[int]*reading
}

// reading is how far the log of an attempt was read.
type reading struct {
	next  int64
	begun bool
	part  []byte // the beginning of a line whose end was not read yet
	calm  int    // readings in a row, since the attempt's end, that found nothing more
}

// Of has yield called with the metrics of a job as its log has them now, over all attempts that are kept. They must not be
// used after it returns.
func (r *Reader) Of(ctx context.Context, job *state.Job, yield func(*curves.Set)) error {
	m := r.of(job.ID)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range job.Attempts {
		if err := r.follow(ctx, m, &job.Attempts[i]); err != nil {
			return err
		}
	}
	yield(&m.set)
	return nil
}

func (r *Reader) of(id string) *metrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := &metrics{id: id, attempts: map[int]*reading{}}
	if i := slices.IndexFunc(r.jobs, func(m *metrics) bool { return m.id == id }); i >= 0 {
		found = r.jobs[i]
		r.jobs = slices.Delete(r.jobs, i, i+1)
	}
	r.jobs = append(r.jobs, found)
	r.jobs = slices.Delete(r.jobs, 0, max(0, len(r.jobs)-keptJobs))
	return found
}

// follow takes in what an attempt wrote since it was read before.
func (r *Reader) follow(ctx context.Context, m *metrics, attempt *state.Attempt) error {
	of := m.attempts[attempt.Number]
	if of == nil {
		of = &reading{next: -most}
		m.attempts[attempt.Number] = of
	}
	for of.calm < settled {
		read, err := r.Read(ctx, m.id, attempt.Number, of.next)
		if err != nil {
			return err
		}
		if len(read.Data) == 0 {
			if attempt.Outcome != "" {
				of.calm++
			}
			return nil
		}
		of.take(read, &m.set)
	}
	return nil
}

// take adds the whole lines of what was read.
func (r *reading) take(read store.LogPart, set *curves.Set) {
	data := read.Data
	if !r.begun && read.Offset > 0 { // the first line is likely to be the end of one
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	r.begun, r.calm, r.next = true, 0, read.Offset+int64(len(read.Data))
	r.part = append(r.part, data...)
	n := bytes.LastIndexByte(r.part, '\n') + 1
	for line := range bytes.Lines(r.part[:n]) {
		set.Add(string(line))
	}
	r.part = bytes.Clone(r.part[n:min(len(r.part), n+longest)])
}
