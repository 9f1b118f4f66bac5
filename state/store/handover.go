package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// handoverTTL bounds how long a request stands whose author died: until then a
// holder that yields keeps away.
const handoverTTL = 30 * time.Second

// Handover asks a holder that yields to release the lease, and to come back
// when the one who asks is done. Its times are by the asking machine's clock.
type Handover struct {
	By      string    `json:"by"` // for people
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	Nonce   string    `json:"nonce"` // unique to the request
	Done    bool      `json:"done,omitempty"`
}

func (h Handover) pending(now time.Time) bool { return !h.Done && now.Before(h.Expires) }

// RequestHandover asks the holder of the lease to give way to the one that by
// describes. Acquire does it by itself; the requester clears the request.
func RequestHandover(ctx context.Context, s Store, by Lease) (Handover, error) {
	now := time.Now().UTC()
	h := Handover{By: by.Who(), At: now, Expires: now.Add(handoverTTL), Nonce: newNonce()}
	if err := putHandover(ctx, s, h, Any); err != nil {
		return Handover{}, fmt.Errorf("request handover: %w", err)
	}
	return h, nil
}

// PendingHandover reports whether another process waits for the lease to be released.
func PendingHandover(ctx context.Context, s Store) (bool, error) {
	h, _, err := readHandover(ctx, s)
	if err != nil {
		return false, fmt.Errorf("read handover: %w", err)
	}
	return h.pending(time.Now()), nil
}

// ClearHandover marks a request as done, unless a later one has taken its place.
func ClearHandover(ctx context.Context, s Store, h Handover) error {
	found, gen, err := readHandover(ctx, s)
	if err == nil && found.Nonce == h.Nonce {
		h.Done = true
		err = putHandover(ctx, s, h, gen)
	}
	if err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("clear handover: %w", err)
	}
	return nil
}

func putHandover(ctx context.Context, s Store, h Handover, want Generation) error {
	data, err := EncodeIndented(h)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = s.Put(ctx, HandoverKey, data, want)
	return err
}

// readHandover returns the zero Handover, which is not pending, for none, and
// for one that is damaged: it is only a wish.
func readHandover(ctx context.Context, s Store) (Handover, Generation, error) {
	object, err := s.Get(ctx, HandoverKey)
	if errors.Is(err, ErrNotFound) {
		return Handover{}, Absent, nil
	}
	if err != nil {
		return Handover{}, 0, err
	}
	return parseHandover(object.Data), object.Generation, nil
}

func parseHandover(data []byte) Handover {
	var h Handover
	if Decode(data, &h) != nil {
		return Handover{}
	}
	return h
}
