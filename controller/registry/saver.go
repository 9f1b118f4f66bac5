package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/state/store"
)

// endpointsFormat is the version of the object that this fray writes.
const endpointsFormat = 1

// endpointsObject is store.EndpointsKey as it is written.
type endpointsObject struct {
	Format int    `json:"format"`
	Epoch  uint64 `json:"epoch"` // of the lease under which it was written
	// Nonce is unique to one write: it settles whether one whose reply was
	// lost has happened.
	Nonce     string      `json:"nonce"`
	Endpoints []*Endpoint `json:"endpoints"`
}

// ErrFenced is the error of a write after another controller wrote the endpoints:
// this process does not lead any more.
var ErrFenced = errors.New("another controller has written the endpoints")

// Saver keeps the registry in the store. Each write replaces the one it
// saw before, so that a leader whose lease went on writes nothing any more.
type Saver struct {
	store      store.Store
	epoch      uint64
	generation store.Generation
	doubtful   []string // nonces of writes of which it is not known whether they happened
}

// NewSaver saves under the epoch of a lease.
func NewSaver(s store.Store, epoch uint64) *Saver {
	return &Saver{store: s, epoch: epoch}
}

// Take reads what was saved and writes it again under this epoch: from then on
// no earlier leader can write, and what it acknowledged is here.
func (s *Saver) Take(ctx context.Context) ([]*Endpoint, error) {
	for {
		found, err := s.read(ctx)
		if err != nil {
			return nil, err
		}
		if found.Epoch > s.epoch {
			return nil, fmt.Errorf("%w, under epoch %d; this one's is %d", ErrFenced, found.Epoch, s.epoch)
		}
		switch err := s.Save(ctx, found.Endpoints); {
		case err == nil:
			return found.Endpoints, nil
		case !errors.Is(err, ErrFenced):
			return nil, err
		}
		// An earlier leader's last write was faster; it is read now.
		s.doubtful = nil
	}
}

// Load reads the endpoints that a store has.
func Load(ctx context.Context, s store.Store) ([]*Endpoint, error) {
	found, err := (&Saver{store: s}).read(ctx)
	return found.Endpoints, err
}

func (s *Saver) read(ctx context.Context) (endpointsObject, error) {
	object, err := s.store.Get(ctx, store.EndpointsKey)
	if errors.Is(err, store.ErrNotFound) {
		s.generation = store.Absent
		return endpointsObject{}, nil
	}
	if err != nil {
		return endpointsObject{}, fmt.Errorf("read endpoints: %w", err)
	}
	var found endpointsObject
	if err := store.Decode(object.Data, &found); err != nil {
		return endpointsObject{}, fmt.Errorf("read endpoints: %s in %s cannot be read; remove it, and its tasks must register again: %w",
			store.EndpointsKey, s.store.Location(), err)
	}
	if found.Format > endpointsFormat {
		return endpointsObject{}, fmt.Errorf("read endpoints: %s in %s was written by a newer fray; use that", store.EndpointsKey, s.store.Location())
	}
	s.generation = object.Generation
	return found, nil
}

// Save writes the endpoints. After an error that is not errFenced it is not known
// whether they were written; the next save finds out.
func (s *Saver) Save(ctx context.Context, endpoints []*Endpoint) error {
	out := endpointsObject{Format: endpointsFormat, Epoch: s.epoch, Nonce: rand.Text(), Endpoints: endpoints}
	data, err := store.Encode(out)
	if err != nil {
		return fmt.Errorf("save endpoints: %w", err)
	}
	generation, err := s.store.Put(ctx, store.EndpointsKey, data, s.generation)
	if err != nil {
		s.doubtful = append(s.doubtful, out.Nonce)
		if generation, err = s.settle(ctx, out.Nonce, err); err != nil {
			return err
		}
	}
	s.generation, s.doubtful = generation, nil
	return nil
}

// settle reads what is stored after a write that failed.
func (s *Saver) settle(ctx context.Context, nonce string, cause error) (store.Generation, error) {
	object, err := s.store.Get(ctx, store.EndpointsKey)
	if err != nil {
		return 0, fmt.Errorf("save endpoints: %w", cause)
	}
	var found endpointsObject
	err = store.Decode(object.Data, &found)
	switch {
	case err == nil && found.Nonce == nonce:
		return object.Generation, nil
	case err == nil && slices.Contains(s.doubtful, found.Nonce):
		s.generation, s.doubtful = object.Generation, nil // ours after all: to be built upon
	case errors.Is(cause, store.ErrConflict):
		return 0, fmt.Errorf("save endpoints: %w", ErrFenced)
	}
	return 0, fmt.Errorf("save endpoints: %w", cause)
}
