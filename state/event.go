package state

import (
	"slices"
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
	// Of is what became of the slice, where it is about one that a cloud made.
	Of *SliceEvent `json:"of,omitempty"`
}

// SliceEvent is what became of a slice in a cloud, for programs.
type SliceEvent struct {
	Change      SliceChange `json:"change"`
	Zone        string      `json:"zone"`
	Type        string      `json:"type"` // of TPU, or of machine
	Index       int         `json:"index,omitempty"`
	Preemptible bool        `json:"preemptible,omitempty"`
	// Failed is how its creation failed, with ChangeFailed.
	Failed schema.ErrorKind `json:"failed,omitempty"`
	// Cause is why it is to go, with ChangeGoing.
	Cause Cause `json:"cause,omitempty"`
}

// SliceChange is a closed set.
type SliceChange string

// What becomes of a slice.
const (
	ChangeAsked  SliceChange = "asked"  // its creation was requested
	ChangeUp     SliceChange = "up"     // all its hosts have reported in
	ChangeFailed SliceChange = "failed" // a call about it failed
	ChangeGoing  SliceChange = "going"  // it is to be deleted
	ChangeGone   SliceChange = "gone"   // it is deleted
)

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
	EventNotice   EventKind = "notice"   // a receiver of a notification was told, or could not be
	EventBudget   EventKind = "budget"   // a budget of money is nearly used, is used up, or is well again
)

// EventKinds lists every kind.
func EventKinds() []EventKind {
	return []EventKind{
		EventLaunched, EventStarted, EventReady, EventEnded, EventJob, EventPending, EventSlice, EventDrift, EventLease, EventProvider, EventConfig, EventNotice, EventBudget,
	}
}

// Names are what events are asked for by: the address that an event is about, that without its
// instance key, its job group and its modules. They are those of which [schema.Address.Contains] holds.
func (e *Event) Names() []string {
	if e.Addr.IsZero() {
		return nil
	}
	names := []string{e.Addr.String()}
	add := func(a schema.Address) {
		if name := a.String(); !a.IsZero() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(e.Addr.Base())
	add(e.Addr.GroupAddress())
	for _, module := range e.Addr.Modules() {
		add(module)
	}
	return names
}
