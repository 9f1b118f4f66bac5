package controller

import (
	"context"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// standing follows the values of the configuration that was accepted last, by
// its recording. While that cannot be opened or evaluated the last values stand;
// why is told once, and it is tried again.
type standing struct {
	ctx  context.Context // of the lease
	cfg  *Config
	name string

	refine   func(doc *state.Document) (*schema.Desired, error) // nil: not open
	failures int                                                // in a row
	next     time.Time                                          // when to try again
	told     string
}

// stand has the values of the configuration that stands followed, from the first
// step after it was accepted. Files that are followed have seen to theirs.
func (l *leader) stand(ctx context.Context) {
	doc := l.stepper.Document()
	if l.stands != nil && *l.stands == doc.Revision {
		return
	}
	l.standsFor(doc)
	if doc.Recorded == "" || l.cfg.Recorded == nil {
		l.stepper.SetRefine(nil)
		return
	}
	s := &standing{ctx: ctx, cfg: &l.cfg, name: doc.Recorded}
	l.stepper.SetRefine(s.Refine)
}

// standsFor notes that the values of a document's configuration are followed.
func (l *leader) standsFor(doc *state.Document) {
	revision := doc.Revision // of its own: it must not keep the document
	l.stands = &revision
}

// standsOn goes on following where a change, such as a stop, leaves the
// configuration as it was.
func (l *leader) standsOn(before, after *state.Document) {
	if l.stands == nil || *l.stands != before.Revision || before.Revision == after.Revision || before.Recorded != after.Recorded {
		return
	}
	if reconcile.SameDesired(&before.Desired, &after.Desired) {
		l.standsFor(after)
	}
}

// Refine is as in apply.Config, without an error that would hold up the loop.
func (s *standing) Refine(doc *state.Document) (*schema.Desired, error) {
	now := time.Now()
	if now.Before(s.next) {
		return nil, nil
	}
	desired, err := s.try(doc)
	if err == nil {
		s.failures, s.told = 0, ""
		return desired, nil
	}
	s.failures++
	s.next = now.Add(plan.Backoff(s.failures))
	if why := err.Error(); why != s.told {
		s.told = why
		s.cfg.Log.Warn("values known only after apply are not followed; the last ones stand", "why", why)
	}
	return nil, nil
}

func (s *standing) try(doc *state.Document) (*schema.Desired, error) {
	if s.refine == nil {
		refine, err := s.cfg.Recorded(s.ctx, s.name)
		if err != nil {
			return nil, err
		}
		s.refine = refine
	}
	return s.refine(doc)
}
