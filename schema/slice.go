package schema

import (
	"time"
)

// SliceSpec is what a provider is asked to create: a unit of capacity that
// lives and dies as a whole. Everything in it is recorded on the slice itself
// (labels, metadata), so that the slice can be recognized without any state.
type SliceSpec struct {
	Name        string       `json:"name"`  // deterministic, unique in the stack; at most 63 of [a-z0-9-]
	Stack       string       `json:"stack"` // the stack's mark; without it a slice is untouchable
	Owner       Address      `json:"owner"` // the job instance or reservation it was made for
	Index       int          `json:"index"` // among the owner's slices
	Provider    ProviderName `json:"provider"`
	TPU         string       `json:"tpu,omitempty"`
	GPU         GPU          `json:"gpu,omitzero"`  // of each host
	CPU         float64      `json:"cpu,omitempty"` // cores
	Memory      Bytes        `json:"memory,omitempty"`
	Disk        Bytes        `json:"disk,omitempty"`
	MachineType string       `json:"machine_type,omitempty"`
	Zone        string       `json:"zone,omitempty"` // where it is asked for; "" where there are none
	Preemptible bool         `json:"preemptible"`
	Hosts       int          `json:"hosts"` // at least 1
	Cloud       CloudSpec    `json:"cloud,omitzero"`
	// On is the slice on whose host OnHost this one is placed as a packed slice, a part of
	// that machine; "": it has machines of its own.
	On     string `json:"on,omitempty"`
	OnHost int    `json:"on_host,omitempty"`
}

// DefaultIdleTimeout is how long a slice beyond a reservation's min may idle.
const DefaultIdleTimeout = 5 * time.Minute

// SlicePhase is how a slice stands in its provider's eyes.
type SlicePhase string

// The phases. What is not listed in an inventory at all is gone.
const (
	SliceCreating SlicePhase = "creating"
	SliceReady    SlicePhase = "ready"
	SliceDeleting SlicePhase = "deleting"
	SliceDead     SlicePhase = "dead" // holds capacity until it is deleted
)

// SliceStatus is one slice as an inventory lists it.
type SliceStatus struct {
	Spec      SliceSpec  `json:"spec"`
	Phase     SlicePhase `json:"phase"`
	Reason    string     `json:"reason,omitempty"` // why it is dead or slow, in words
	Cause     ErrorKind  `json:"cause,omitempty"`  // of a dead one, as far as it is known
	CreatedAt time.Time  `json:"created_at"`
	Waiting   bool       `json:"waiting,omitempty"` // in the cloud's queue, without machines
	// Down lists the hosts whose agent the provider knows to be gone while
	// the host itself may be repaired in place by creating the slice again.
	Down []int `json:"down,omitempty"`
	// DownReason is why the agent of one of them ended, for people; "" if that is not known.
	DownReason string `json:"down_reason,omitempty"`
	// Agents are the process ids of the hosts' agents by host, -1 for one that is being
	// started and 0 for none; nil where the provider cannot see processes. A report of
	// another process is of an agent that has ended.
	Agents []int `json:"agents,omitempty"`
	// Edited says what of it its provider has otherwise than it was asked for and can be
	// changed in place: labels and tags that were removed or changed by hand.
	Edited []string `json:"edited,omitempty"`
}

// Inventory is every slice of one provider that carries the stack's mark. It is
// complete but for the zones that it names as unlisted, of which nothing is known,
// whether or not some of their slices are there, and for the items that it names as
// skipped. Any other failure to list is an error instead. One list is one reading:
// a service may answer with one that is empty, short or old, and call it whole.
type Inventory struct {
	Slices []SliceStatus `json:"slices"` // sorted by name
	// Unlisted says of each zone that could not be listed why.
	Unlisted map[string]string `json:"unlisted,omitempty"`
	// Skipped are the items with the stack's mark that are no slice of it, or cannot
	// be read. Nothing is concluded about them: they are neither used nor deleted.
	Skipped []SkippedItem `json:"skipped,omitempty"`
	// Foreign counts what the provider's capacity also holds that is not this stack's.
	Foreign int `json:"foreign,omitempty"`
}

// SkippedItem is one item of a list that an inventory leaves out.
type SkippedItem struct {
	Name   string     `json:"name"` // its own, as the provider has it
	Zone   string     `json:"zone,omitempty"`
	Reason SkipReason `json:"reason"`
	Text   string     `json:"text"` // what is wrong with it and how to fix it
}

// SkipReason is the closed set of reasons why an inventory leaves an item out.
type SkipReason string

// The reasons.
const (
	SkipCopy       SkipReason = "copy"       // it carries the labels and metadata of another item
	SkipUnreadable SkipReason = "unreadable" // what it says about itself cannot be read
)
