package notice

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Ledger is what was told and what is to be told. Values reached through it are never
// changed in place.
type Ledger struct {
	Epoch  uint64 `json:"epoch"`  // of the lease under which it was written
	Number uint64 `json:"number"` // of the last notice
	// Leader is who led last, nil before the first.
	Leader *Leader `json:"leader,omitempty"`
	// Told is what was told of the notifications that the state has.
	Told map[schema.Address]Told `json:"told,omitempty"`
	// Notices are those that some receiver does not have yet, oldest first.
	Notices []Notice `json:"notices,omitempty"`
	// Receivers are how deliveries go, of those that have failed last.
	Receivers map[string]Failure `json:"receivers,omitempty"`
	// Dropped counts, by notification, the notices that were never delivered to a receiver.
	Dropped map[schema.Address]int `json:"dropped,omitempty"`
}

// Leader is the process that leads a stack.
type Leader struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
}

// Told is what was told of one notification.
type Told struct {
	Since time.Time `json:"since"` // it was declared
	// Open are the conditions that were told and hold still, by their keys.
	Open map[string]Condition `json:"open,omitempty"`
}

// Condition is something that is to be told once.
type Condition struct {
	Kind schema.NoticeKind `json:"kind"`
	Item Item              `json:"item"`
}

// Status is a closed set of what a notice says of its items.
type Status string

// The statuses.
const (
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Notice is one message.
type Notice struct {
	ID           string            `json:"id"` // unique; the same whenever the notice is sent
	Notification schema.Address    `json:"notification"`
	Kind         schema.NoticeKind `json:"kind"`
	Status       Status            `json:"status"`
	Stack        string            `json:"stack"` // its mark
	Workspace    string            `json:"workspace"`
	At           time.Time         `json:"at"`
	Title        string            `json:"title"`
	Items        []Item            `json:"items"`
	More         int               `json:"more,omitempty"` // items that are left out
	// To are the receivers that do not have it yet; it is no part of the message.
	To []schema.Receiver `json:"to,omitempty"`
}

// Item is what a notice is about.
type Item struct {
	Addr      schema.Address `json:"address,omitzero"`
	Namespace string         `json:"namespace,omitempty"` // its scoped name
	Slice     string         `json:"slice,omitempty"`
	// Cause is for programs: a kind of drift or of waiting, the outcome of an attempt, the
	// unit of a budget.
	Cause string    `json:"cause,omitempty"`
	Text  string    `json:"text"`
	Since time.Time `json:"since,omitzero"`
	Used  float64   `json:"used,omitempty"` // of a budget
	Limit float64   `json:"limit,omitempty"`
}

// Failure is how deliveries to one receiver fail.
type Failure struct {
	Since time.Time    `json:"since"`
	Cause FailureCause `json:"cause"`
	Code  int          `json:"code,omitempty"` // the status of HTTP, or that of a command's exit
	Text  string       `json:"text"`
}

// FailureCause is a closed set of reasons why a delivery fails.
type FailureCause string

// The causes.
const (
	CauseUnreachable FailureCause = "unreachable" // there was no answer
	CauseTimeout     FailureCause = "timeout"     // it took too long
	CauseUntrusted   FailureCause = "untrusted"   // its certificate
	CauseRedirect    FailureCause = "redirect"
	CauseStatus      FailureCause = "status"   // an answer that is no success
	CauseCommand     FailureCause = "command"  // it could not be started, or has failed
	CauseSealed      FailureCause = "sealed"   // its sensitive values cannot be opened
	CauseInvalid     FailureCause = "invalid"  // the receiver or the notice is no valid one
	CauseCanceled    FailureCause = "canceled" // this process ends
)

// Bounds of a ledger.
const (
	maxItems   = 20                 // of a notice
	maxWaiting = 100                // notices of one notification
	maxText    = 500                // bytes of a text
	maxAge     = 3 * 24 * time.Hour // after which a notice is not sent any more
)

// ReceiverName is a receiver's key in Ledger.Receivers.
func ReceiverName(of schema.Address, r schema.Receiver) string { return of.String() + " " + string(r) }

// clone is a copy whose maps and lists may be changed.
func (l *Ledger) clone() *Ledger {
	next := *l
	next.Told = cloneMap(l.Told)
	next.Receivers = cloneMap(l.Receivers)
	next.Dropped = cloneMap(l.Dropped)
	next.Notices = slices.Clone(l.Notices)
	return &next
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
