package state

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Event is something that happened to a stack, for people.
type Event struct {
	At   time.Time      `json:"at"`
	Kind EventKind      `json:"kind"`
	Addr schema.Address `json:"address,omitzero"` // what it is about
	// Slice is its name, where it is about one.
	Slice string `json:"slice,omitempty"`
	// Level says how good or bad it is.
	Level EventLevel `json:"level,omitempty"`
	Text  string     `json:"text"`
}

// EventLevel is a closed set.
type EventLevel string

// The levels of events.
const (
	EventInfo  EventLevel = ""
	EventGood  EventLevel = "good"
	EventWarn  EventLevel = "warn"
	EventError EventLevel = "error"
)

// EventKind is a closed set.
type EventKind string

// The kinds of events.
const (
	EventLaunched EventKind = "launched" // a program asked for it
	EventStarted  EventKind = "started"  // an attempt began
	EventReady    EventKind = "ready"
	EventEnded    EventKind = "ended" // an attempt did
	EventJob      EventKind = "job"   // its status changed otherwise
	EventPending  EventKind = "pending"
	EventSlice    EventKind = "slice" // asked for, up, going
	EventDrift    EventKind = "drift"
	EventLease    EventKind = "lease"
	EventProvider EventKind = "provider" // it cannot be seen, or not all of it, or can again
	EventConfig   EventKind = "config"   // another configuration was accepted
)

// EventKinds lists every kind.
func EventKinds() []EventKind {
	return []EventKind{
		EventLaunched, EventStarted, EventReady, EventEnded, EventJob, EventPending, EventSlice, EventDrift, EventLease, EventProvider, EventConfig,
	}
}
