package cloud

import "time"

// Scenario is how a cloud behaves. The zero Scenario is a cloud without faults.
type Scenario struct {
	Seed uint64
	// Project is the only one that exists; "": any does.
	Project string
	// Networks are the ones that exist; nil: any does.
	Networks []string
	// NetworkRules are how networks differ from the built-in ones, by name, each once.
	NetworkRules []Network
	// Runtimes are runtime versions that exist beside the published ones.
	Runtimes []string
	// CreateLimit is how many creations a minute each API takes of a project; 0: 90.
	CreateLimit int
	// PageSize is the longest page of a list; 0: 500.
	PageSize int
	API      API
	// Conditions are those of every zone and type which has none of its own.
	Conditions Conditions
	Zones      []Zone // by name, each once
	Quotas     []Quota
	// Stockouts are windows without capacity for anything new.
	Stockouts []Window
	// Outages are windows in which lists over all zones leave a zone out as
	// unreachable and calls to it fail.
	Outages []Window
	Events  []Scripted // in order of time
}

// API is how the API itself behaves.
type API struct {
	Latency     Range   // of every call
	FailureRate float64 // share of calls that get UNAVAILABLE and do nothing
	// LostReplies is the share of calls that do their work and yet get UNAVAILABLE.
	LostReplies float64
	// UnreachableRate is the share of lists over all zones that leave one zone out.
	UnreachableRate float64
	// ListFaultRate is the share of lists that succeed and are wrong, each in one of
	// the ways of ListFault.
	ListFaultRate   float64
	Deny            []string // permissions that are missing, "tpu.nodes.create"
	Disabled        []string // APIs that are not enabled, "tpu.googleapis.com"
	Unauthenticated bool     // every call is
	Constraints     []string // of the organization that are enforced, "compute.disableGuestAttributesAccess"
}

// Range is a span of time from which one is drawn evenly.
type Range struct{ Min, Max time.Duration }

// Conditions are what happens to groups. The zero value of each field means no fault;
// in a zone or type it means the value of the enclosing block.
type Conditions struct {
	// Provisioning is from the request to power on; zero: 2 s to 5 s.
	Provisioning Range
	// Boot is from power on to the startup script on simulated machines; and by how
	// much the machines of one group are powered on apart, see BootSpread.
	Boot       Range
	BootSpread Range // each machine's delay after the first could power on
	// OperationLag is for how long a group still shows CREATING, and its
	// operation stays open, after its machines have power.
	OperationLag Range
	// Deletion is how long a deletion takes; zero: 1 s to 2 s.
	Deletion Range
	// StockoutAfter is after how long a creation without capacity fails; zero: 1 s to 3 s.
	StockoutAfter Range
	// Preemption is the mean time until a spot group is preempted; 0: never.
	Preemption time.Duration
	Notice     Share // of the preemptions come with 30 s of notice; unset: all of them
	// OddEnds is the share of preempted groups that show another dead state than
	// PREEMPTED.
	OtherEndStates Share
	// Lies is the share of preempted groups that show READY for LieFor.
	StaleStates Share
	StaleFor    Range // zero: 1 min to 10 min
	// Maintenance is the mean time until a maintenance event; 0: never.
	Maintenance    time.Duration
	MaintenanceFor Range // zero: 2 min to 5 min
	// LateFailures is the share of creations that fail with an internal error
	// instead of coming up.
	LateFailures Share
	// CreatePreempted is the share of spot creations preempted on the way.
	CreatePreempted Share
	DeadHosts       Share // share of machines that never power on
	BadHosts        Share // share of machines whose accelerators fail
	// VagueFor is for how long a ready group shows neither health nor endpoints.
	UnknownHealthFor Range
	// StuckDeletions is the share of deletions that hang for StuckFor.
	StuckDeletions Share
	StuckFor       Range // zero: 30 min to 2 h
	QueueConditions
}

// QueueConditions are what happens to queued resources.
type QueueConditions struct {
	// Suspension is how long a queued resource stays SUSPENDING; zero: 10 s to 30 s.
	Suspension Range
	// Lingering is the share of suspended queued resources whose nodes stay.
	Lingering Share
}

// Share is a probability that may be unset. Of makes one.
type Share struct {
	Set bool
	P   float64 // 0 to 1
}

// Of is the share p.
func Of(p float64) Share { return Share{Set: true, P: p} }

// Zone is one zone. A zone that is not built in exists by being named.
type Zone struct {
	Name string
	// Capacity is what there is in chips, GPUs or cores by type, "v5litepod", "h100" or "n2", for
	// spot and on demand together. A type that is not named has what is built in:
	// plenty, where it is published to be offered.
	Capacity map[string]int
	// Reserved is what reservations hold, beside Capacity; a type that is not
	// named has none.
	Reserved   map[string]int
	Conditions Conditions
	Types      []TypeConditions
}

// TypeConditions are the conditions of one type in a zone.
type TypeConditions struct {
	Name       string
	Conditions Conditions
}

// Network is what machines reach in a network.
type Network struct {
	Name string
	// Allow is what its machines may reach of each other: "all", "tcp" or "tcp:22-80".
	// The built-in networks allow all.
	Allow []string
	// NAT are the regions with a Cloud NAT; the built-in networks have none.
	NAT []string
	// NoGoogleAccess says that machines without external addresses do not reach
	// Google's APIs.
	NoGoogleAccess bool
}

// Quota limits a type in a region.
type Quota struct {
	Region string // "us-west4", or RegionGlobal
	Type   string // or TypeGPU
	Tier   Tier   // "": all together
	Limit  int
}

// Window is a span of scenario time in a zone.
type Window struct {
	Zone string
	Type string // "": all of the zone's
	From time.Duration
	To   time.Duration // 0: for ever
	// Preempt also takes the spot groups that are there.
	Preempt bool
}

// Scripted is something that happens at its time.
type Scripted struct {
	At     time.Duration // since the start
	Action Action
	Target string        // name of a group; "name/2" of one of its machines
	Zone   string        // of a stockout or an outage, or to distinguish groups of one name
	Type   string        // of a stockout
	For    time.Duration // of a stockout or an outage; 0: for ever
	Silent bool          // a preemption without notice
	List   string        // which list is wrong; "": any
	Times  int           // in how many lists; 0: any number
}

// Action is a closed set of what can be scripted.
type Action string

// The actions.
const (
	ActionPreempt  Action = "preempt"
	ActionKillHost Action = "kill_host"
	ActionMaintain Action = "maintain"
	ActionStockout Action = "stockout"
	ActionOutage   Action = "outage"
	ActionList     Action = "list" // Target is the ListFault
)
