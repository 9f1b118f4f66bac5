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

// handoverPace is how often a holder looks for a request that its lease has no mark of, of an
// earlier fray. It is less than a client that asks waits.
const handoverPace = handoverPatience / 2

// handoverLook is what a holder knows of requests for its lease.
type handoverLook struct {
	asked   chan struct{} // has a token when the lease was marked
	checked string        // the mark for which the request was read
	at      time.Time     // when it was read last
}

func (l *handoverLook) notify() {
	select {
	case l.asked <- struct{}{}:
	default:
	}
}

// Asked has a token when another process has asked for the lease.
func (h *Held) Asked() <-chan struct{} { return h.handover.asked }

// HandoverPending is [PendingHandover] for the holder. Where requests cost something it is read
// only after a renewal has found the lease marked, and now and then.
func (h *Held) HandoverPending(ctx context.Context) (bool, error) {
	now := h.cfg.Now()
	h.mu.Lock()
	asked := h.lease.Asked
	due := h.store.WriteInterval() == 0 || asked != h.handover.checked || now.Sub(h.handover.at) >= handoverPace
	h.mu.Unlock()
	if !due {
		return false, nil
	}
	pending, err := PendingHandover(ctx, h.store)
	if err == nil {
		h.mu.Lock()
		h.handover.checked, h.handover.at = asked, now
		h.mu.Unlock()
	}
	return pending, err
}

// mark writes into the lease that its holder is asked for it, for a holder that does not look for
// the request all the time: its next renewal finds that. Nothing else of the lease changes, neither
// its nonce nor when it lapses, and only the lease that was read is written. If it fails it
// is tried again at the next look.
func (a *acquisition) mark(ctx context.Context, l Lease) {
	if a.store.WriteInterval() == 0 || l.Asked == a.handover.Nonce {
		return
	}
	l.Asked = a.handover.Nonce
	data, err := EncodeIndented(l)
	if err != nil {
		return
	}
	if gen, err := a.store.Put(ctx, LeaseKey, data, a.seen); err == nil {
		a.seen = gen // which is no renewal
	}
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
