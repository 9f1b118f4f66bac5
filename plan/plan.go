// Package plan has the types of decisions: what was observed, what is planned, why
// something waits. The decisions themselves are stages above it, each a package that
// knows those below: plan/snapshot, plan/capacity, plan/lifecycle, plan/schedule,
// plan/reconcile; plan/change compares what is declared with what is recorded, and
// plan/incremental makes plans again and again.
//
// All of them are pure: no clock, no I/O, no logs, no randomness. Retry budgets,
// backoff, gangs, placement and waiting are decided from recorded facts and now, so
// that every policy is a table test. Carrying actions out is apply's; showing a plan
// is plan/render's.
//
// Start with [Plan], then plan/reconcile for the order of decisions.
package plan

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Observed is the world as it was just looked up.
type Observed struct {
	// Inventories holds the complete ones only; a provider that is missing
	// could not be asked, and nothing may be concluded from that.
	Inventories map[schema.ProviderName]schema.Inventory
	// Unreachable says why a provider has no inventory.
	Unreachable map[schema.ProviderName]Unreachable
	// Confirmations are what is known, beside the lists, of the slices that the last
	// plan doubted, by name; see [Plan.Doubts].
	Confirmations map[string]Confirmation
	Assignments   map[string]Assigned // by slice
	// Damaged says why the assignment of a slice cannot be read: Assignments has an
	// empty one for it.
	Damaged map[string]string
	// Hosts are the reports, by slice and in host order; see [Host.SameReport].
	Hosts map[string][]Host
	// Unread are slices with hosts that have a report which was not read yet, as after a takeover
	// of many: that Hosts does not have them says nothing.
	Unread map[string]bool
	// Booting are the slices of which machines have stated how far they have come, in objects
	// that their agents remove once they report.
	Booting map[string]bool
	// Look numbers the observations of one observer, 0: it does not count. Changed are the
	// slices of which an assignment, a report or what a machine states was written or removed since Look-1.
	Look    uint64
	Changed map[string]bool
	// Monitored is for how long the observer has monitored the store, see [Host.SilentFor].
	Monitored time.Duration
}

// Listed are the names of the slices that providers list.
func (o *Observed) Listed() map[string]bool {
	listed := map[string]bool{}
	for _, inv := range o.Inventories {
		for i := range inv.Slices {
			listed[inv.Slices[i].Spec.Name] = true
		}
	}
	return listed
}

// Unreachable is why a provider could not be asked for its slices.
type Unreachable struct {
	Kind schema.ErrorKind
	Text string
}

// Assigned is an assignment as it stands in the store.
type Assigned struct {
	state.Assignment
	Object state.Generation // of the object, for the next write's precondition
}

// Host is a host's report and when the observer last saw a new one.
type Host struct {
	state.HostReport
	Heartbeat *Heartbeat // nil: the host is known to live, until another report shows otherwise
}

// Lives reports whether the host is known to live, so that no silence has begun.
func (h *Host) Lives() bool { return h.Heartbeat == nil }

// SilentFor is how long the observer has monitored the store since it last saw a new
// report of this host. Time in which it did not monitor (suspended, just started, a look into the
// mailbox under way) does not count.
func (h *Host) SilentFor(monitored time.Duration) time.Duration {
	if h.Heartbeat == nil {
		return 0
	}
	return max(0, monitored-h.Heartbeat.heardAt)
}

// SameReport reports whether two hosts have the same report, apart from heartbeats. Task
// reports are the same only as the same value in memory: an observer keeps a host's
// former report where a new one differs in nothing but its time and number.
func (h *Host) SameReport(o *Host) bool {
	a, b := &h.HostReport, &o.HostReport
	return a.Slice == b.Slice && a.Host == b.Host && a.Boot == b.Boot && a.Version == b.Version && a.PID == b.PID &&
		a.Address == b.Address && a.Instance == b.Instance && a.CoordinatorPort == b.CoordinatorPort && a.MegascalePort == b.MegascalePort &&
		a.Epoch == b.Epoch && a.Generation == b.Generation && a.Notice == b.Notice && a.Task == b.Task &&
		a.API == b.API && a.Fingerprint == b.Fingerprint && slices.Equal(a.PackedTasks, b.PackedTasks) &&
		slices.Equal(a.SigningKey, b.SigningKey) && slices.Equal(a.IdentityKey, b.IdentityKey)
}

// Heartbeat is when a host was last heard, by the time for which its observer had
// monitored. It does not change: the next one is another value.
type Heartbeat struct{ heardAt time.Duration }

// HeardAt is the time that it was made with.
func (b *Heartbeat) HeardAt() time.Duration { return b.heardAt }

// NewHeartbeat is that of a host heard at a time.
func NewHeartbeat(heard time.Duration) *Heartbeat { return &Heartbeat{heardAt: heard} }

// Plan is what follows from one look at the world.
type Plan struct {
	Mode Mode
	// Targets are what the plan was narrowed to by its caller; nil: it is of all that is declared.
	Targets []schema.Address
	// Changes are what the files ask for, in Address order; those with
	// VerbNone are kept, so that a plan names everything declared.
	Changes []Change
	// Outputs are what becomes of every output, see [OutputChanges]; none where its
	// caller does not record any.
	Outputs []OutputChange
	// Blocked are the changes that are shown and not made, in Address order.
	Blocked []BlockedChange
	// Amendments are what the files change in the state itself, by address.
	// [Diff] is given the state with them and leaves it to its caller to name
	// them here.
	Amendments []Amendment
	// Drift is what changed in the world by itself, and what is done about it.
	Drift []Drift
	// Pending lists what waits, and for what.
	Pending  []Pending
	Capacity []Capacity
	// Expiries are when reservations end that do, in their order.
	Expiries []Expiry
	// Costs are what [Costs] estimates. As with Amendments, it is the caller of
	// [Diff] who fills them in, where they are to be shown.
	Costs []Cost
	// Running is what runs of what the changes restart, replace or delete. The caller of
	// [Diff] fills it in, too.
	Running []Running
	// Policies are the results of the policies that hold for the plan, by name. As with
	// Amendments, the caller of [Diff] fills them in.
	Policies []PolicyResult
	// MoneyBudgets are how the cost blocks of namespaces stand and will at the planned rate,
	// filled in as Costs are.
	MoneyBudgets []MoneyBudget
	// Schedules are the next runs of jobs with a schedule, which its caller fills in too.
	Schedules []ScheduledRuns

	// Doubts are the slices against which the lists speak and nothing else does yet.
	// The next observation is to read them directly.
	Doubts []Doubt

	// Actions may all be carried out now, in any order, at the same time.
	Actions []Action
	// Next is the state with what was just learnt and decided; it is the
	// given document itself where nothing changed.
	Next *state.Document
	// Wake is when time alone will change something, zero if never.
	Wake time.Time
}

// Mode is what a plan is made for.
type Mode string

// The modes.
const (
	ModeApply       Mode = "" // what the files ask for
	ModeDestroy     Mode = "destroy"
	ModeRefreshOnly Mode = "refresh-only" // the state is to record what was observed, and nothing else is done
)

// Verb is what a plan does with an address.
type Verb string

// The verbs.
const (
	VerbNone    Verb = "no-op"
	VerbCreate  Verb = "create"
	VerbUpdate  Verb = "update"  // recorded, nothing restarts
	VerbRestart Verb = "restart" // in place, on the same slices
	VerbReplace Verb = "replace" // new slices
	VerbDelete  Verb = "delete"
)

// Change is what happens to one address because the files ask for it.
type Change struct {
	Addr   schema.Address `json:"address"`
	Verb   Verb           `json:"action"`
	Reason string         `json:"reason,omitempty"` // where the verb does not follow from the attributes, and why they changed
	// ActionReason is why it is replaced or deleted; Reason says it in words.
	ActionReason ActionReason  `json:"action_reason,omitempty"`
	Attrs        []*AttrChange `json:"attributes,omitempty"`
}

// AttrChange is one attribute of a Change, in the order of the language
// reference. Before or After is nil where there is no such attribute.
type AttrChange struct {
	Path      string          `json:"path"` // "resources.tpu", "environment.env.HOME"
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"` // Before and After are then absent
	Unknown   bool            `json:"unknown,omitempty"`   // After is known after apply
	// Verb is what this attribute alone would cause; VerbNone: unchanged.
	Verb Verb `json:"action"`
	// Variables are those that it reads and whose values changed, sorted; nil: it is not
	// known of any.
	Variables []string `json:"variables,omitempty"`
	// Files are those that changed, of the files of a project; nil: it is not known which.
	Files []FileChange `json:"files,omitempty"`
}

// Drift is a difference between the state and the world.
type Drift struct {
	Kind  DriftKind      `json:"kind"`
	Addr  schema.Address `json:"address"`
	Slice string         `json:"slice,omitempty"`
	Found string         `json:"found"` // "slice pool-0-… is gone"
	Then  string         `json:"then"`  // "will be created again"
}

// Pending is something that waits.
type Pending struct {
	Addr schema.Address `json:"address"`
	// Kind is that of the first reason that does not come about by itself.
	Kind    WaitKind `json:"kind,omitempty"`
	Reasons []string `json:"reasons"` // one per place or cause
	// Underway says that it waits for nothing but what this plan does or what
	// is being done already: its slices, its hosts, its tasks.
	Underway bool `json:"underway,omitempty"`
	// Blocked says that it waits for something that has ended otherwise, and
	// so will not come about until that changes.
	Blocked bool `json:"blocked,omitempty"`
}

// Expiry is when the time of a reservation is over.
type Expiry struct {
	Addr schema.Address `json:"address"`
	At   time.Time      `json:"at"`
	Over bool           `json:"over,omitempty"` // it is already
}

// Capacity sums up one provider, before and after the plan.
type Capacity struct {
	Provider schema.ProviderName `json:"provider"`
	Before   Amount              `json:"before"`
	After    Amount              `json:"after"`
	Limit    Amount              `json:"limit"` // zero fields: no limit
}

// Amount is an amount of capacity.
type Amount struct {
	Slices int          `json:"slices"`
	Hosts  int          `json:"hosts,omitempty"`
	Chips  int          `json:"chips,omitempty"` // of TPUs
	GPUs   int          `json:"gpus,omitempty"`
	CPU    float64      `json:"cpu,omitempty"` // cores asked for
	Memory schema.Bytes `json:"memory,omitempty"`
}

// ActionVerb is a closed set of what apply can do.
type ActionVerb string

// The action verbs.
const (
	CreateSlice ActionVerb = "create_slice"
	RepairSlice ActionVerb = "repair_slice" // start what is missing of it
	UpdateSlice ActionVerb = "update_slice" // what can be changed in place
	DeleteSlice ActionVerb = "delete_slice"
	Assign      ActionVerb = "assign"
	// ForgetSlice removes the mailbox of a slice that is gone.
	ForgetSlice ActionVerb = "forget_slice"
)

// Action is one call or write to carry out now.
type Action struct {
	Verb ActionVerb
	Addr schema.Address // on whose behalf
	// Slice does not change. Its Name is always set; the rest for create and repair.
	Slice *schema.SliceSpec
	// Assignment is what to write, if the object's generation is still Object.
	Assignment *state.Assignment
	Object     state.Generation
	// AfterSave says that the action destroys the only evidence of something
	// that Next records, or makes what only Next tells the purpose of, so that
	// Next must be saved before.
	AfterSave bool
}

// Counts are the numbers of a plan's changes by verb.
func (p *Plan) Counts() map[Verb]int {
	counts := map[Verb]int{}
	for _, c := range p.Changes {
		counts[c.Verb]++
	}
	return counts
}

// Empty reports whether there is nothing to do: no change, also none of an
// output, no amendment, no drift, no action. What merely waits does not count.
func (p *Plan) Empty() bool {
	counts := p.Counts()
	return !p.OutputsChange() && counts[VerbNone] == len(p.Changes) && len(p.Amendments) == 0 && len(p.Drift) == 0 && len(p.Actions) == 0
}
