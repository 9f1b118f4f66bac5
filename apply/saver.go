package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// SaveInterval is the least time between two writes of the state: object
// stores take one write a second for one object.
const SaveInterval = time.Second

// ErrStateMoved is the error after another client wrote the state: this process no
// longer acts for the stack.
var ErrStateMoved = errors.New("another client has written the state")

// LoadState reads the stack's document and the generation it was read at;
// generation Absent and a new document where there is none yet.
func LoadState(ctx context.Context, s store.Store) (*state.Document, store.Generation, error) {
	obj, err := s.Get(ctx, store.StateKey)
	if errors.Is(err, store.ErrNotFound) {
		if err := notLost(ctx, s); err != nil {
			return nil, 0, err
		}
		return &state.Document{FormatVersion: state.FormatVersion, Lineage: newLineage()}, store.Absent, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read state: %w", err)
	}
	doc, err := state.Decode(obj.Data)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s in %s: %w", store.StateKey, s.Location(), err)
	}
	if doc.MovedTo != "" {
		return nil, 0, fmt.Errorf("%w: it was migrated from %s to %s; declare that in the fray block, or bring it back with fray state migrate",
			ErrStateMigrated, s.Location(), doc.MovedTo)
	}
	return &doc, obj.Generation, nil
}

// ErrStateMigrated says that the state is kept in another store now.
var ErrStateMigrated = errors.New("the state is not here any more")

// ErrStateLost says that there is no state although something was made under one.
var ErrStateLost = errors.New("the state is gone")

// notLost refuses to begin a new state beside slices that an older one made:
// they carry a mark that only it knew, and would run on unseen.
func notLost(ctx context.Context, s store.Store) error {
	for _, prefix := range []string{store.AssignPrefix, store.BootPrefix, store.HostsPrefix} {
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

// saver writes the document under the generation it last saw.
type saver struct {
	store      store.Store
	generation store.Generation
	serial     uint64
	version    string
	epoch      uint64
	now        func() time.Time
	last       time.Time     // of the last write
	took       time.Duration // that write
	saved      *state.Document
	doubtful   []string // nonces of writes since generation of which it is not known whether they happened
}

// documentStore is a store within this process that keeps a document as it is, and
// encodes it when a reader needs it.
type documentStore interface {
	PutDocument(ctx context.Context, doc *state.Document, want store.Generation) (store.Generation, error)
}

// put writes a document.
func (s *saver) put(ctx context.Context, doc *state.Document) (store.Generation, error) {
	if keeper, ok := s.store.(documentStore); ok {
		return keeper.PutDocument(ctx, doc, s.generation)
	}
	data, err := state.Encode(*doc)
	if err != nil {
		return 0, &encodeError{err}
	}
	return s.store.Put(ctx, store.StateKey, data, s.generation)
}

// encodeError is why a document cannot be written at all.
type encodeError struct{ err error }

func (e *encodeError) Error() string { return "encode state: " + e.err.Error() }

func (e *encodeError) Unwrap() error { return e.err }

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

// urgentWait is the same where something waits for it. A store that takes writes
// of one object at any rate gets one as soon as that costs little of the time.
func (s *saver) urgentWait() time.Duration {
	wait := s.wait()
	if wait == 0 || s.store.WriteInterval() > 0 {
		return wait
	}
	return min(wait, max(0, urgentShare*s.took-s.now().Sub(s.last)))
}

// save writes doc. A conflict is settled by the nonce in the content: a write
// whose reply was lost has won after all.
func (s *saver) save(ctx context.Context, doc *state.Document) error {
	began := s.now()
	out := *doc
	out.FormatVersion = state.FormatVersion
	out.FrayVersion = s.version
	out.Serial = s.serial + 1
	out.Epoch = s.epoch
	out.Nonce = rand.Text()
	generation, err := s.put(ctx, &out)
	if _, never := errors.AsType[*encodeError](err); never {
		return err
	}
	if err != nil {
		s.doubtful = append(s.doubtful, out.Nonce)
		if generation, err = s.settle(ctx, out.Nonce, err); err != nil {
			return err
		}
	}
	s.generation, s.serial, s.saved, s.last, s.doubtful = generation, out.Serial, doc, s.now(), nil
	s.took = s.last.Sub(began)
	return nil
}

// settle looks what is there after a write that failed. One of our own that is
// not the last is built upon by the next save.
func (s *saver) settle(ctx context.Context, nonce string, cause error) (store.Generation, error) {
	obj, err := s.store.Get(ctx, store.StateKey)
	if err != nil {
		return 0, fmt.Errorf("save state: %w", cause)
	}
	found, err := state.Decode(obj.Data)
	switch {
	case err == nil && found.Nonce == nonce:
		return obj.Generation, nil
	case err == nil && slices.Contains(s.doubtful, found.Nonce):
		s.generation, s.serial, s.doubtful = obj.Generation, found.Serial, nil
	case errors.Is(cause, store.ErrConflict):
		return 0, fmt.Errorf("save state: %w", ErrStateMoved)
	}
	return 0, fmt.Errorf("save state: %w", cause)
}
