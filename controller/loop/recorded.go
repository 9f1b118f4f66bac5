package loop

import (
	"context"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// recording follows the values of the accepted configuration by its recording.
// While that cannot be opened or evaluated the last values stay; the reason is
// logged once, and the next try backs off.
type recording struct {
	ctx  context.Context // of the lease
	cfg  *Config
	name string

	refine   func(doc *state.Document) (*schema.Desired, error) // nil: not open
	failures int                                                // in a row
	next     time.Time                                          // when to try again
	logged   string                                             // the last reason
}

// followRecorded has the values of the accepted configuration followed, from the
// first step after it was accepted. Followed files have a refinement of their own.
func (l *leader) followRecorded(ctx context.Context) {
	doc := l.stepper.Document()
	if l.followed != nil && *l.followed == doc.Revision {
		return
	}
	l.setFollowed(doc)
	if doc.Recorded == "" || l.cfg.Recorded == nil {
		l.stepper.SetRefine(nil)
		return
	}
	r := &recording{ctx: ctx, cfg: &l.cfg, name: doc.Recorded}
	l.stepper.SetRefine(r.Refine)
}

// setFollowed records that the values of a document's configuration are followed.
func (l *leader) setFollowed(doc *state.Document) {
	revision := doc.Revision // a copy: it must not keep the document
	l.followed = &revision
}

// keepFollowing keeps the refinement where a change, such as a stop, leaves the
// configuration as it was.
func (l *leader) keepFollowing(before, after *state.Document) {
	if l.followed == nil || *l.followed != before.Revision || before.Revision == after.Revision || before.Recorded != after.Recorded {
		return
	}
	if reconcile.SameDesired(&before.Desired, &after.Desired) {
		l.setFollowed(after)
	}
}

// Refine is as in apply.Config, without an error that would hold up the loop.
func (r *recording) Refine(doc *state.Document) (*schema.Desired, error) {
	now := time.Now()
	if now.Before(r.next) {
		return nil, nil
	}
	desired, err := r.try(doc)
	if err == nil {
		r.failures, r.logged = 0, ""
		return desired, nil
	}
	r.failures++
	r.next = now.Add(plan.Backoff(r.failures))
	if why := err.Error(); why != r.logged {
		r.logged = why
		r.cfg.Log.Warn("values known only after apply are not followed; the last ones stay", "why", why)
	}
	return nil, nil
}

func (r *recording) try(doc *state.Document) (*schema.Desired, error) {
	if r.refine == nil {
		refine, err := r.cfg.Recorded(r.ctx, r.name)
		if err != nil {
			return nil, err
		}
		r.refine = refine
	}
	return r.refine(doc)
}
