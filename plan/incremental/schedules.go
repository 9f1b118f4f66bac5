package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// schedules are the jobs whose runs begin at times of the clock. A clean one is decided
// about again when its next run is due: nothing else tells of that.
type schedules struct {
	jobs  []scheduledJob
	index map[schema.Address]bool
	first time.Time // when the next run of any of them is due, zero: none is
}

type scheduledJob struct {
	job  int // index of the desired one
	addr schema.Address
}

// find takes in which jobs have a schedule, after a plan that decided about everything.
func (s *schedules) find(desired *schema.Desired, doc *state.Document) {
	*s = schedules{}
	for i := range desired.Jobs {
		if want := &desired.Jobs[i]; want.Schedule != nil {
			s.jobs = append(s.jobs, scheduledJob{job: i, addr: want.Addr})
		}
	}
	if len(s.jobs) == 0 {
		return
	}
	s.index = make(map[schema.Address]bool, len(s.jobs))
	for _, of := range s.jobs {
		s.index[of.addr] = true
	}
	s.look(doc)
}

// look finds when the next run is due.
func (s *schedules) look(doc *state.Document) {
	s.first = time.Time{}
	for _, of := range s.jobs {
		if at := dueOf(doc, of.addr); !at.IsZero() && (s.first.IsZero() || at.Before(s.first)) {
			s.first = at
		}
	}
}

// wake is when the next run of a job is due about which a plan did not decide: of the others
// that plan found out itself.
func (s *schedules) wake(doc *state.Document, decided []int) time.Time {
	isDecided := func(of scheduledJob) bool {
		_, found := slices.BinarySearch(decided, of.job)
		return found
	}
	if !slices.ContainsFunc(s.jobs, isDecided) {
		return s.first
	}
	var first time.Time
	for _, of := range s.jobs {
		if at := dueOf(doc, of.addr); !isDecided(of) && !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// update takes in that the records of jobs were changed.
func (s *schedules) update(doc *state.Document, edited []schema.Address) {
	for _, addr := range edited {
		if s.index[addr] {
			s.look(doc)
			return
		}
	}
}

// due are the jobs with a run that is due now.
func (s *schedules) due(doc *state.Document, now time.Time) []int {
	if s.first.IsZero() || now.Before(s.first) {
		return nil
	}
	var found []int
	for _, of := range s.jobs {
		if at := dueOf(doc, of.addr); !at.IsZero() && !now.Before(at) {
			found = append(found, of.job)
		}
	}
	return found
}

func dueOf(doc *state.Document, addr schema.Address) time.Time {
	if j := doc.Jobs[addr]; j != nil && j.Scheduled != nil {
		return j.Scheduled.Due
	}
	return time.Time{}
}
