package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/state"
)

// EventsKey is the n-th chunk of events that the holder of an epoch writes.
// Chunks are in the order of their keys; a chunk is rewritten while it grows.
func EventsKey(epoch uint64, n int) string {
	return fmt.Sprintf("%s%012d-%08d", EventsPrefix, epoch, n)
}

// EncodeEvents is a chunk's content: a line of JSON for each event.
func EncodeEvents(events []state.Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range events {
		if err := enc.Encode(&events[i]); err != nil {
			return nil, fmt.Errorf("encode events: %w", err)
		}
	}
	return b.Bytes(), nil
}

// DecodeEvents reads a chunk. What is damaged is left out.
func DecodeEvents(data []byte) []state.Event {
	var events []state.Event
	for line := range bytes.Lines(data) {
		var e state.Event
		if json.Unmarshal(line, &e) == nil {
			events = append(events, e)
		}
	}
	return events
}

// EventReader reads a stack's events, chunk by chunk, each once.
type EventReader struct {
	Store Store
	// Last is how many of the past are enough for the first call of Next, which
	// may return more; 0: all that are kept.
	Last int
	// About are names of which one is enough, as [state.Event.Names] has them, and Since a time,
	// in so far as Next need not return other events of the past; nil, zero: it returns all.
	About []string
	Since time.Time

	read map[string]int // events of each chunk that were returned
	gens map[string]Generation
}

// Next returns what is new since the last call, oldest first. With an error it
// returns what it could read, which the next call does not return again.
func (r *EventReader) Next(ctx context.Context) ([]state.Event, error) {
	listed, err := r.Store.List(ctx, EventsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	if r.read == nil {
		if err := r.begin(ctx, listed); err != nil {
			return nil, err
		}
	}
	r.forget(listed)
	var fresh []state.Event
	for _, a := range listed {
		if r.gens[a.Key] == a.Generation {
			continue
		}
		object, err := r.Store.Get(ctx, a.Key)
		if errors.Is(err, ErrNotFound) {
			continue // it was old
		}
		if err != nil {
			return fresh, fmt.Errorf("read events: %w", err)
		}
		events := DecodeEvents(object.Data)
		fresh = append(fresh, events[min(r.read[a.Key], len(events)):]...)
		r.read[a.Key], r.gens[a.Key] = len(events), object.Generation
	}
	return fresh, nil
}

// longEvent is more than most events take in a chunk, in bytes.
const longEvent = 1 << 10

// eventSkew is more than the clocks of the store and of who wrote events differ by.
const eventSkew = time.Hour

// begin takes the chunks for read that are older than the Last events, that were written before
// Since, or that are about something else.
func (r *EventReader) begin(ctx context.Context, listed []Attrs) error {
	index := &EventIndex{}
	if len(r.About) > 0 && len(listed) > 1 {
		var err error
		if index, _, err = ReadEventIndex(ctx, r.Store); err != nil {
			return err
		}
	}
	r.read, r.gens = map[string]int{}, map[string]Generation{}
	enough := int64(r.Last) * longEvent
	for _, a := range slices.Backward(listed) {
		switch {
		case r.Last > 0 && enough <= 0,
			!r.Since.IsZero() && a.Updated.Before(r.Since.Add(-eventSkew)),
			len(r.About) > 0 && !index.MayBeAbout(a, r.About):
			r.gens[a.Key] = a.Generation
		}
		enough -= a.Size
	}
	return nil
}

// forget drops what was remembered of chunks that are gone.
func (r *EventReader) forget(listed []Attrs) {
	if len(r.gens) <= len(listed) {
		return
	}
	there := make(map[string]bool, len(listed))
	for _, a := range listed {
		there[a.Key] = true
	}
	gone := func(key string) bool { return !there[key] }
	maps.DeleteFunc(r.gens, func(key string, _ Generation) bool { return gone(key) })
	maps.DeleteFunc(r.read, func(key string, _ int) bool { return gone(key) })
}
