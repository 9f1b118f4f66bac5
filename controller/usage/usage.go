// Package usage keeps in memory what tasks used over time, as the reports of their hosts
// show it. Of each task it keeps a bounded number of points over all of its attempt: the
// longer that runs, the coarser they are. It leaves out measuring, and saves nothing.
//
// Start with [Recorder].
package usage

import (
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

const (
	// FirstStep is the time between the first points of a task: no less than between two
	// measurements, and two steps of a loop that has nothing to do.
	FirstStep = 10 * time.Second
	// leastPause is the least time between two looks at all reports.
	leastPause = 4 * time.Second
	// maxPoints is how many points a task has at most, an even number.
	maxPoints = 120
)

// Recorder keeps the points of all tasks that run, and of the last one of a slice that
// has ended. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	tasks map[place]*series
	at    time.Time // of the last reports that were taken in
}

// place is where a task runs.
type place struct {
	slice string
	host  int
}

// run is one start of a task.
type run struct {
	job     schema.Address
	attempt int
}

// Series is the points of a task.
type Series struct {
	Begin time.Time
	Step  time.Duration
	// Points are those of the times Begin, Begin+Step and so on; nil where nothing was reported.
	Points []*Point
	Actors []state.ActorUsage // as reported last
}

// Point is a mean.
type Point struct {
	CPU    float64  // processors
	Memory float64  // bytes
	Duty   *float64 // of TPU chips; nil: not known
	Calls  float64  // of all its actors, a second
}

// series is a Series with the reports of its last step, of which no point was made yet.
type series struct {
	run run
	Series
	last time.Time // that a report was taken in
	open int       // the step that the sums are of
	sums sums
}

type sums struct {
	n, duties                int
	cpu, memory, duty, calls float64
}

// Observe takes in the reports of hosts. Those that come very soon after the last ones
// are left out: they have nothing new.
func (r *Recorder) Observe(hosts map[string][]plan.Host, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.at) < leastPause {
		return
	}
	r.at = now
	for slice, of := range hosts {
		for i := range of {
			h := &of[i]
			for of, used := range h.Usage {
				at := place{of, 0}
				if of == slice {
					at.host = h.Host
				}
				if s := r.seriesOf(at, hosts[of], now); s != nil {
					s.add(now, &used)
				}
			}
		}
	}
	for at, s := range r.tasks { // what has ended is kept as long as its slice
		if s.last != now && len(hosts[at.slice]) == 0 {
			delete(r.tasks, at)
		}
	}
}

// seriesOf is the series of the task that runs at a place, nil if none does.
func (r *Recorder) seriesOf(at place, hosts []plan.Host, now time.Time) *series {
	i := slices.IndexFunc(hosts, func(h plan.Host) bool { return h.Host == at.host })
	if i < 0 || hosts[i].Task == nil || hosts[i].Task.State != schema.TaskRunning {
		return nil
	}
	is := run{hosts[i].Task.Job, hosts[i].Task.Attempt}
	if s := r.tasks[at]; s != nil && s.run == is {
		return s
	}
	if r.tasks == nil {
		r.tasks = map[place]*series{}
	}
	s := &series{run: is, Series: Series{Begin: now, Step: FirstStep}}
	r.tasks[at] = s
	return s
}

func (s *series) add(now time.Time, used *state.Usage) {
	for {
		step := int(now.Sub(s.Begin) / s.Step)
		if step == s.open {
			break
		}
		switch last := len(s.Points) - 1; {
		case s.sums.n > 0:
			s.Points, s.sums = append(s.Points, s.sums.point()), sums{}
		case step == s.open+1 && last >= 0: // one report that came a little late is no gap
			s.Points = append(s.Points, s.Points[last])
		default:
			s.Points = append(s.Points, nil)
		}
		if s.open++; len(s.Points) == maxPoints {
			s.halve()
		}
	}
	s.sums.add(used)
	s.Actors, s.last = used.Actors, now
}

// halve makes one point of each two.
func (s *series) halve() {
	for i := range maxPoints / 2 {
		var both sums
		for _, p := range s.Points[2*i : 2*i+2] {
			if p != nil {
				both.add(&state.Usage{CPU: p.CPU, Memory: int64(p.Memory), Duty: p.Duty, Actors: []state.ActorUsage{{Calls: p.Calls}}})
			}
		}
		s.Points[i] = nil
		if both.n > 0 {
			s.Points[i] = both.point()
		}
	}
	s.Points = slices.Clone(s.Points[:maxPoints/2])
	s.Step *= 2
	s.open = maxPoints / 2
}

func (s *sums) add(u *state.Usage) {
	s.n++
	s.cpu, s.memory = s.cpu+u.CPU, s.memory+float64(u.Memory)
	if u.Duty != nil {
		s.duties, s.duty = s.duties+1, s.duty+*u.Duty
	}
	for _, a := range u.Actors {
		s.calls += a.Calls
	}
}

func (s *sums) point() *Point {
	n := float64(s.n)
	p := &Point{CPU: s.cpu / n, Memory: s.memory / n, Calls: s.calls / n}
	if s.duties > 0 {
		mean := s.duty / float64(s.duties)
		p.Duty = &mean
	}
	return p
}

// Of is what a task of an attempt used, with the step that is under way; false if nothing
// of it is known here.
func (r *Recorder) Of(slice string, host int, job schema.Address, attempt int) (Series, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tasks[place{slice, host}]
	if s == nil || s.run != (run{job, attempt}) {
		return Series{}, false
	}
	out := s.Series
	out.Points = slices.Clone(out.Points)
	if s.sums.n > 0 {
		out.Points = append(out.Points, s.sums.point())
	}
	return out, true
}
