package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/journal"
	"github.com/fray-ml/fray/state/store"
)

// SaveInterval is the least time between two writes of the state: object
// stores take one write a second for one object.
const SaveInterval = time.Second

// ErrStateMoved is the error after another client wrote the state: this process no
// longer acts for the stack.
var ErrStateMoved = journal.ErrMoved

// LoadState reads the stack's document and the generation of its snapshot;
// generation Absent and a new document where there is none yet.
func LoadState(ctx context.Context, s store.Store) (*state.Document, store.Generation, error) {
	doc, at, err := journal.Load(ctx, s)
	doc, err = loaded(ctx, s, doc, err)
	return doc, at.Generation, err
}

// openState is LoadState for a client that writes what follows. known has read the state before;
// nil: it was not read.
func openState(ctx context.Context, s store.Store, stamp journal.Stamp, known *StateReader) (*journal.Writer, *state.Document, error) {
	open := func(ctx context.Context, stamp journal.Stamp) (*journal.Writer, *state.Document, error) {
		return journal.Open(ctx, s, stamp)
	}
	if known != nil {
		open = known.reader.Open
	}
	w, doc, err := open(ctx, stamp)
	doc, err = loaded(ctx, s, doc, err)
	return w, doc, err
}

// loaded is what was read, a new document where there is none yet.
func loaded(ctx context.Context, s store.Store, doc *state.Document, err error) (*state.Document, error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		if err := notLost(ctx, s); err != nil {
			return nil, err
		}
		return &state.Document{FormatVersion: state.FormatVersion, Lineage: newLineage()}, nil
	case err != nil:
		return nil, err
	case doc.MovedTo != "":
		return nil, fmt.Errorf("%w: it was migrated from %s to %s; declare that in the fray block, or bring it back with fray state migrate",
			ErrStateMigrated, s.Location(), doc.MovedTo)
	}
	return doc, nil
}

// StateReader reads the state again and again, and each time only what has changed.
type StateReader struct{ reader journal.Reader }

// NewStateReader returns a reader, which has read nothing yet.
func NewStateReader(s store.Store) *StateReader {
	return &StateReader{journal.Reader{Store: s}}
}

// Read is LoadState, and reports whether the document is another one than at the last call. It
// is not to be changed. Where there is no state the document is nil.
func (r *StateReader) Read(ctx context.Context) (doc *state.Document, changed bool, err error) {
	doc, changed, err = r.reader.Read(ctx)
	missing := errors.Is(err, store.ErrNotFound)
	doc, err = loaded(ctx, r.reader.Store, doc, err)
	if missing && err == nil {
		return nil, true, nil
	}
	return doc, changed, err
}

// Journaled reports whether the state that was read last is large, so that a read of what
// follows costs less than one of it all.
func (r *StateReader) Journaled() bool { return r.reader.Journaled() }

// ErrStateMigrated says that the state is kept in another store now.
var ErrStateMigrated = errors.New("the state is not here any more")

// ErrStateLost says that there is no state although something was made under one.
var ErrStateLost = errors.New("the state is gone")

// notLost refuses to begin a new state beside slices that an older one made:
// they carry a mark that only it knew, and would run on unseen.
func notLost(ctx context.Context, s store.Store) error {
	for _, prefix := range []string{store.JournalPrefix, store.AssignPrefix, store.BootPrefix, store.HostsPrefix} {
		found, err := s.List(ctx, prefix)
		if err != nil {
			return fmt.Errorf("look for what an older state made: %w", err)
		}
		if len(found) > 0 {
			return fmt.Errorf("%w: %s is not in %s, but %s says that slices were made under it; go back to an older version (fray state history, fray state rollback), "+
				"or make it again from what runs (fray state rebuild)",
				ErrStateLost, store.StateKey, s.Location(), found[0].Key)
		}
	}
	return nil
}

// newLineage is 26 random characters of [A-Z2-7], in lower case.
func newLineage() string {
	text := []byte(rand.Text())
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
	return string(text)
}

// saver writes the document, at a pace.
type saver struct {
	store      store.Store
	writer     *journal.Writer // a save that is under way alone uses it
	jobRecords *jobRecords     // likewise
	notices    Notices         // kept before the state is saved; nil: none are
	valid      func() error    // whether the lease still holds
	now        func() time.Time
	failed     func(error) // reports that a write failed which holds up nothing

	last      time.Time     // of the last write
	took      time.Duration // that write
	saved     *state.Document
	since     state.Edits            // when a save began last
	journaled bool                   // the next save writes an entry of a journal
	asked     map[string]plan.Action // by slice: what is to follow a save, by the step whose state is saved; nil: that is not known
	running   *saving                // beside the steps; nil: none is
	held      map[string]time.Time   // by slice: since when an action waits for a save
}

// dirty reports whether doc is not what was saved last.
func (s *saver) dirty(doc *state.Document) bool { return s.saved != doc }

// wait is how long to wait before the next write is allowed.
func (s *saver) wait() time.Duration {
	if s.last.IsZero() {
		return 0
	}
	return max(0, SaveInterval-s.now().Sub(s.last))
}

// urgentShare is how much more time may pass without saving than with it, where
// something waits for a save.
const urgentShare = 20

// urgentEntries is the least time between two entries of a journal where something waits
// for the second. Each is an object of its own, and the snapshot is written once for many.
const urgentEntries = 200 * time.Millisecond

// urgentWait is the same where something waits for it. A store that takes writes
// of one object at any rate gets one as soon as that costs little of the time, and a journal
// gets an entry soon.
func (s *saver) urgentWait() time.Duration {
	wait, since := s.wait(), s.now().Sub(s.last)
	switch {
	case wait == 0:
		return 0
	case s.store.WriteInterval() == 0:
		return min(wait, max(0, urgentShare*s.took-since))
	case s.journaled:
		return min(wait, max(0, urgentEntries-since))
	}
	return wait
}

// Consolidate has nothing left in the store of how the state was written before it was
// saved last: under another key, for one.
func (s *Stepper) Consolidate(ctx context.Context) error {
	if err := s.saver.await(ctx); err != nil {
		return err
	}
	return s.saver.writer.Consolidate(ctx)
}
