package apply

import (
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
)

// Pace of the loop: how soon to look again right after a call to a provider, when hosts
// of this machine begin to report, while something is under way, and when all is well.
const (
	eagerPace = 10 * time.Millisecond
	busyPace  = 40 * time.Millisecond
	quietPace = 250 * time.Millisecond
	// eagerFor is how long after a call eagerPace holds.
	eagerFor = 500 * time.Millisecond
	// eagerShare is how many times as long as a step the pause after it is at least.
	eagerShare = 4
)

// pace is when to step next: soon while anything is under way, at the plan's
// wake time, or quietly.
func (s *Stepper) pace(p *plan.Plan) time.Duration {
	// Hosts look and report once in a write interval: more looks than a few
	// in that time show nothing new, and a bucket charges for each.
	interval := s.cfg.Store.WriteInterval()
	next := max(quietPace, interval)
	look := s.observer.look.running
	hostsCome := look != nil && look.held // by streams; that of one wakes the loop
	if !hostsCome && (len(p.Actions) > 0 || len(p.Pending) > 0 || len(s.exec.inFlight) > 0) {
		next = max(s.busyPace(), interval/4)
	}
	if look != nil && !look.held {
		next = min(next, mailPatience)
	}
	if s.saver.dirty(s.doc) && s.saver.running == nil {
		next = min(next, max(s.untilSave(p), time.Millisecond))
	}
	if due := accounting.DueAt(s.doc, s.cfg.Now()); !due.IsZero() {
		next = min(next, max(due.Sub(s.cfg.Now()), time.Millisecond))
	}
	if !p.Wake.IsZero() {
		next = min(next, max(p.Wake.Sub(s.cfg.Now()), time.Millisecond))
	}
	return next
}

// busyPace is how soon to look again while something is under way, where the store
// has no pace of its own.
func (s *Stepper) busyPace() time.Duration {
	if s.cfg.Now().Sub(s.called) >= eagerFor {
		return busyPace
	}
	return min(busyPace, max(eagerPace, eagerShare*s.lastStepTime))
}
