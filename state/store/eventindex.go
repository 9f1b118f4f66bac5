package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/fray-ml/fray/state"
)

// EventIndexKey is what chunks of events are about. It is no chunk itself: its prefix is another one.
const EventIndexKey = "events.index"

// EventIndex is what chunks of events are about, so that a reader of few jobs does not read all. It
// need not have every chunk: one that it does not have, or not as it is now, is read.
type EventIndex struct {
	Chunks map[string]IndexedChunk `json:"chunks"` // by key
}

// IndexedChunk is what one version of a chunk is about.
type IndexedChunk struct {
	Generation Generation `json:"generation"`
	About      []byte     `json:"about"` // hashes of names, four bytes each, in order
}

// Add takes a chunk in.
func (x *EventIndex) Add(key string, g Generation, events []state.Event) {
	var hashes []uint32
	for i := range events {
		for _, name := range events[i].Names() {
			hashes = append(hashes, nameHash(name))
		}
	}
	slices.Sort(hashes)
	c := IndexedChunk{Generation: g}
	for _, hash := range slices.Compact(hashes) {
		c.About = binary.BigEndian.AppendUint32(c.About, hash)
	}
	if x.Chunks == nil {
		x.Chunks = map[string]IndexedChunk{}
	}
	x.Chunks[key] = c
}

// Has reports whether the index has a chunk as it is.
func (x *EventIndex) Has(a Attrs) bool {
	c, there := x.Chunks[a.Key]
	return there && c.Generation == a.Generation
}

// MayBeAbout reports whether a chunk may have events of one of these names.
func (x *EventIndex) MayBeAbout(a Attrs, names []string) bool {
	return !x.Has(a) || slices.ContainsFunc(names, func(name string) bool {
		about, want := x.Chunks[a.Key].About, nameHash(name)
		low, high := 0, len(about)/4
		for low < high {
			at := (low + high) / 2
			switch hash := binary.BigEndian.Uint32(about[4*at:]); {
			case hash == want:
				return true
			case hash < want:
				low = at + 1
			default:
				high = at
			}
		}
		return false
	})
}

// Keep drops the chunks that are not listed.
func (x *EventIndex) Keep(listed []Attrs) {
	there := make(map[string]bool, len(listed))
	for _, a := range listed {
		there[a.Key] = true
	}
	maps.DeleteFunc(x.Chunks, func(key string, _ IndexedChunk) bool { return !there[key] })
}

func nameHash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum32()
}

// Encode is the index as it is stored: JSON, compressed.
func (x *EventIndex) Encode() ([]byte, error) {
	data, err := json.Marshal(x)
	if err != nil {
		return nil, fmt.Errorf("encode the index of events: %w", err)
	}
	return state.Compress(data)
}

// ReadEventIndex reads the index, an empty one where there is none. One that is damaged is empty,
// too: chunks are read without it, and it is written anew.
func ReadEventIndex(ctx context.Context, s Store) (*EventIndex, Generation, error) {
	object, err := s.Get(ctx, EventIndexKey)
	switch {
	case errors.Is(err, ErrNotFound):
		return &EventIndex{}, Absent, nil
	case err != nil:
		return nil, Absent, fmt.Errorf("read the index of events: %w", err)
	}
	x := &EventIndex{}
	text, err := state.Decompress(object.Data)
	if err != nil || json.Unmarshal(text, x) != nil {
		x = &EventIndex{}
	}
	return x, object.Generation, nil
}
