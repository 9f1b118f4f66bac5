package apply

import (
	"context"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Notices are what receivers are to be told of what happens to a stack.
type Notices interface {
	// Note decides what a plan and the document that it leads to give reason to tell. It is fast.
	Note(p *plan.Plan, doc *state.Document, now time.Time)
	// Save keeps what was decided and is not kept yet.
	Save(ctx context.Context) error
}

// Sizes of what is kept of the past.
const (
	chunkEvents = 500 // in a chunk
	keptChunks  = 1000
	keptBytes   = 10 << 20 // of all chunks
)

// Recorder keeps what happens in the store, for `fray events`. It writes at
// most once a second, and losing what it has not written yet is no harm.
type Recorder struct {
	Store store.Store
	Epoch uint64
	Valid func() error // whether the lease still holds; called before every write

	fresh   []state.Event // since the last write began
	chunk   []state.Event // the newest one
	number  int
	unsaved bool
	tidied  bool // old chunks were looked for
	savedAt time.Time
	indexer eventIndexer
	lasting map[plan.Drift]bool // of the last step
}

// Note takes in what a step brought about, since the state that edits begin with. Drift that lasts
// for several steps is an event once.
func (r *Recorder) Note(p *plan.Plan, since *state.Edits, now time.Time) {
	found := *p
	found.Drift = nil
	var lasting map[plan.Drift]bool
	for _, d := range p.Drift {
		if !r.lasting[d] {
			found.Drift = append(found.Drift, d)
		}
		if lasting == nil {
			lasting = map[plan.Drift]bool{}
		}
		lasting[d] = true
	}
	r.lasting = lasting
	r.Add(change.EventsSince(since, &found, now)...)
}

// Add takes in events.
func (r *Recorder) Add(events ...state.Event) {
	r.fresh = append(r.fresh, events...)
}

// Save writes what is new, unless it wrote a moment ago; force does so anyway.
func (r *Recorder) Save(ctx context.Context, now time.Time, force bool) error {
	if !r.begin(now, force) {
		return nil
	}
	return r.write(ctx)
}

// begin has the next write have what is new, and reports whether it is due.
func (r *Recorder) begin(now time.Time, force bool) bool {
	if !r.unsaved && len(r.fresh) == 0 || !force && now.Sub(r.savedAt) < max(time.Second, r.Store.WriteInterval()) {
		return false
	}
	r.savedAt, r.unsaved = now, true
	r.chunk, r.fresh = append(r.chunk, r.fresh...), nil
	return true
}

// write writes the events that are not written. It may go on beside [Recorder.Note] and
// [Recorder.Add].
func (r *Recorder) write(ctx context.Context) error {
	if !r.tidied {
		listed, err := r.forget(ctx)
		if err != nil {
			return err
		}
		r.tidied = true
		if err := r.indexer.save(ctx, r, listed, nil); err != nil {
			return err
		}
	}
	for len(r.chunk) > 0 {
		n := min(len(r.chunk), chunkEvents)
		data, err := store.EncodeEvents(r.chunk[:n])
		if err != nil {
			return err
		}
		if err := r.Valid(); err != nil {
			return err
		}
		key := store.EventsKey(r.Epoch, r.number)
		generation, err := r.Store.Put(ctx, key, data, store.Any)
		if err != nil {
			return err
		}
		if n < chunkEvents {
			break
		}
		full := &fullChunk{key, generation, r.chunk[:n]}
		r.chunk = slices.Clone(r.chunk[n:])
		r.number++
		listed, err := r.forget(ctx)
		if err != nil {
			return err
		}
		if err := r.indexer.save(ctx, r, listed, full); err != nil {
			return err
		}
	}
	r.unsaved = false
	return nil
}

// forget removes the oldest chunks beyond what is kept, and returns the others. They are not
// written any more.
func (r *Recorder) forget(ctx context.Context) (kept []store.Attrs, err error) {
	listed, err := r.Store.List(ctx, store.EventsPrefix)
	if err != nil {
		return nil, err
	}
	size := int64(0)
	for n, a := range slices.Backward(listed) {
		size += a.Size
		if size <= keptBytes && len(listed)-n <= keptChunks {
			kept = append(kept, a)
			continue
		}
		if err := r.Valid(); err != nil {
			return nil, err
		}
		if err := r.Store.Delete(ctx, a.Key); err != nil {
			return nil, err
		}
	}
	slices.Reverse(kept)
	return kept, nil
}

// note takes in what came about since the last plan: by this one, by what was
// accepted meanwhile and by actions that ended. Each plan is noted at once, since
// the document before it is not good for long.
func (s *Stepper) note(p *plan.Plan) {
	if s.chores.events != nil {
		s.chores.events.Note(p, &s.sinceEvents, s.cfg.Now().UTC())
		s.sinceEvents.Begin(p.Next)
	}
	if s.cfg.Notices != nil {
		s.cfg.Notices.Note(p, p.Next, s.cfg.Now().UTC())
	}
}

// reportDiffering reports the jobs that a check of the planner found to be decided otherwise,
// and returns how many there are.
func (s *Stepper) reportDiffering() int {
	found := s.planner.Differing()
	for _, addr := range found {
		s.Tell(state.Event{
			At: s.cfg.Now().UTC(), Kind: state.EventDrift, Addr: addr, Level: state.EventWarn,
			Text: "a check found that earlier steps should have changed this job, and has done so; this is a defect of fray",
		})
	}
	return len(found)
}

// Tell keeps an event that no step brought about.
func (s *Stepper) Tell(e state.Event) {
	if s.chores.events != nil {
		s.chores.events.Add(e)
	}
}
