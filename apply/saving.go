package apply

import (
	"context"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/unsaved"
	"github.com/fray-ml/fray/state"
)

// Where a write to the store takes a while, steps go on deciding while the state is saved beside
// them, one save at a time. What a step asks for begins at once, as it does in each step between
// two saves, but for actions that destroy evidence: these begin once what they destroy the
// evidence of is saved (see isRecorded). A leader's first save, that after one that failed, and that
// of what a client changes are awaited, as all are where the store is a directory.

// heldLimit is after how long an action has waited for saves beside the steps so long that the next
// save is awaited: of what changes with each step, none of the others would be the newest.
const heldLimit = 5 * time.Second

// saving is one save of the state.
type saving struct {
	doc   *state.Document
	since state.Edits            // the save before
	asked map[string]plan.Action // see saver

	ended   chan struct{} // closed once the following is known
	took    time.Duration
	err     error
	notices error
}

// savesBeside reports whether a write to the store takes so long that steps go on meanwhile.
func (s *saver) savesBeside() bool { return s.store.WriteInterval() > 0 }

// mayGoOn reports whether steps go on while the state is saved next.
func (s *saver) mayGoOn() bool { return s.asked != nil && s.savesBeside() && !s.isHeldLong() }

// save saves a state, to which a step asks for actions, beside the steps if they go on.
func (s *saver) save(ctx context.Context, doc *state.Document, actions []plan.Action, goOn bool) error {
	c := &saving{doc: doc, since: s.since, asked: map[string]plan.Action{}, ended: make(chan struct{})}
	s.since.Begin(doc)
	for _, a := range actions {
		if a.AfterSave {
			c.asked[a.Slice.Name] = a
		}
	}
	if goOn {
		s.running = c
		go s.carryOut(ctx, c)
		return nil
	}
	s.carryOut(ctx, c)
	return s.takeIn(c)
}

// carryOut saves a state. It asks the lease right before it writes: what came before may have taken
// longer than the lease lasts, and then others speak for the stack.
func (s *saver) carryOut(ctx context.Context, c *saving) {
	defer close(c.ended)
	s.writer.Expect(c.doc, &c.since)
	changes := c.since.JobChanges(c.since.From(), c.doc)
	if changes == nil {
		changes = s.writer.JobChanges(c.doc)
	}
	if c.err = s.jobRecords.save(ctx, c.doc, changes); c.err != nil {
		return
	}
	if s.notices != nil {
		c.notices = keepNotices(ctx, s.notices)
	}
	if c.err = s.valid(); c.err != nil {
		return
	}
	began := s.now()
	c.err = s.writer.Save(ctx, c.doc)
	c.took = s.now().Sub(began)
}

// takeIn takes in how a save ended.
func (s *saver) takeIn(c *saving) error {
	s.running, s.journaled = nil, s.writer.Journaled()
	s.failed(c.notices)
	if c.err != nil {
		s.asked = nil
		return c.err
	}
	s.saved, s.asked, s.last, s.took = c.doc, c.asked, s.now(), c.took
	return nil
}

// collect takes in a save beside the steps that has ended, and returns how long it took.
func (s *saver) collect() (time.Duration, error) {
	c := s.running
	if c == nil {
		return 0, nil
	}
	select {
	case <-c.ended:
		return c.took, s.takeIn(c)
	default:
		return 0, nil
	}
}

// await waits for a save beside the steps. That it failed is found out again by the next one.
func (s *saver) await(ctx context.Context) error {
	c := s.running
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
		_ = s.takeIn(c)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ends is closed when a save beside the steps ends; nil where there is none.
func (s *saver) ends() <-chan struct{} {
	if s.running == nil {
		return nil
	}
	return s.running.ended
}

// release returns the actions of a step that may begin, now that some states are saved.
func (s *saver) release(doc *state.Document, actions []plan.Action) []plan.Action {
	var since *unsaved.Changes
	isRecorded := func(a *plan.Action) bool {
		was, asked := s.asked[a.Slice.Name]
		if !s.dirty(doc) || !asked || !s.savesBeside() || !unsaved.Same(&was, a) {
			return !s.dirty(doc)
		}
		if since == nil {
			since = unsaved.Since(s.saved, doc)
		}
		return !since.Concern(a)
	}
	var held map[string]time.Time
	free := make([]plan.Action, 0, len(actions))
	for i := range actions {
		a := &actions[i]
		if !a.AfterSave || isRecorded(a) {
			free = append(free, *a)
			continue
		}
		at, waits := s.held[a.Slice.Name]
		if !waits {
			at = s.now()
		}
		if held == nil {
			held = map[string]time.Time{}
		}
		held[a.Slice.Name] = at
	}
	s.held = held
	return free
}

// isHeldLong reports whether an action has waited for saves for too long.
func (s *saver) isHeldLong() bool {
	for _, since := range s.held {
		if s.now().Sub(since) >= heldLimit {
			return true
		}
	}
	return false
}
