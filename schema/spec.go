package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Config is one evaluated configuration: every block expanded into its
// instances, every reference resolved, every default filled in.
type Config struct {
	Dir      string // absolute; relative paths in the files start here
	Settings Settings
	Desired  Desired

	// Ranges tells where each address and each of its attributes was
	// written: keys are "ADDRESS" and "ADDRESS#attribute", for example
	// "job.a#command" or "job.a#environment.project".
	Ranges map[string]hcl.Range
	// Blocks are what is declared, by base address or by the path of a module without
	// its key, and which instances it has.
	Blocks map[string]Block
	// Outputs by name; those that wait for apply say that they are unknown.
	Outputs map[string]Output

	Ephemeral []string // variables whose values must not be kept
	// Variables are the values of the other variables by their names, each a secret in
	// clear of the name and the value: digests of them say which changed.
	Variables map[string]Text

	Moves      []Move      // as written, those of modules too
	Imports    []Import    // as written
	Removals   []Removal   // as written
	Conditions []Condition // as far as the values that are known decide them

	// Partial says, with Options.Partial, that a value was missing, and with it
	// whatever depends on it.
	Partial bool
	// Momentary reports that something may be another value in each plan or apply.
	Momentary bool
}

// Waits reports whether something of it is decided by values known after apply.
func (c *Config) Waits() bool {
	for _, o := range c.Outputs {
		if o.Unknown {
			return true
		}
	}
	for i := range c.Conditions {
		if c.Conditions[i].Status == ConditionUnknown {
			return true
		}
	}
	return slices.ContainsFunc(c.Desired.Jobs, func(j Job) bool { return len(j.Uses) > 0 || j.HasUnknown() })
}

// Move is a moved block: what has another address now.
type Move struct {
	From, To Address // either may name a module as a whole
	Range    hcl.Range
}

// Import is an import block: what exists and is to be taken over.
type Import struct {
	To    Address
	ID    string // of the slice or slices, comma-separated
	Range hcl.Range
}

// Removal is a removed block: what is declared no more. Without Destroy it is
// released from the state and runs on.
type Removal struct {
	From    Address // may name a module as a whole
	Destroy bool
	Range   hcl.Range
}

// Condition is one precondition, postcondition or assertion and how it stands.
type Condition struct {
	Kind    ConditionKind
	Of      string // an address, "output.NAME" or "check.NAME", with its module
	Status  ConditionStatus
	Message string // error_message of one that does not hold, "" where it is sensitive
	Range   hcl.Range
}

// ConditionKind is a closed set of conditions by where they stand.
type ConditionKind string

// The kinds of conditions. One of a check only warns.
const (
	Precondition  ConditionKind = "precondition"
	Postcondition ConditionKind = "postcondition"
	Assertion     ConditionKind = "assertion"
)

// ConditionStatus is how a condition stands.
type ConditionStatus string

// The statuses. ConditionUnknown is decided by values known after apply.
const (
	ConditionHolds   ConditionStatus = "pass"
	ConditionFails   ConditionStatus = "fail"
	ConditionUnknown ConditionStatus = "unknown"
)

// Lifecycle says what plans may do to what they change. It is no part of what
// the spec itself: another Lifecycle alone changes nothing that runs.
type Lifecycle struct {
	// PreventDestroy refuses plans that delete or replace.
	PreventDestroy bool `json:"prevent_destroy,omitempty"`
	// CreateBeforeDestroy gets the new slices before it gives up the old ones,
	// where capacity allows.
	CreateBeforeDestroy bool `json:"create_before_destroy,omitempty"`
	// Ignore are paths of attributes whose changes are left alone, as in
	// plan.AttrChange ("command", "environment.env.NAME"); a block's path stands
	// for all in it, and "all" for everything.
	Ignore []string `json:"ignore_changes,omitempty"`
	// Trigger is a digest of the values that replace_triggered_by names; another
	// one replaces. "" is none, or not known yet.
	Trigger string `json:"trigger,omitempty"`
	// TriggeredBy are the addresses that it names: a change of one replaces.
	TriggeredBy []Trigger `json:"triggered_by,omitempty"`
}

// Trigger names a declaration whose change replaces another one.
type Trigger struct {
	Addr Address `json:"addr"`           // without a key: of any instance
	Path string  `json:"path,omitempty"` // of an attribute as in Lifecycle.Ignore; "": of any
	// Digest is filled in where plans are made: of what is desired of Addr, which
	// then has its key. "": it is not known yet.
	Digest Digest `json:"digest,omitempty"`
}

// IsZero reports whether nothing is said.
func (l Lifecycle) IsZero() bool {
	return !l.PreventDestroy && !l.CreateBeforeDestroy && len(l.Ignore) == 0 && l.Trigger == "" && len(l.TriggeredBy) == 0
}

// Settings is the fray block: what holds for the tool rather than the workload.
type Settings struct {
	RequiredVersion string
	Backend         Backend
	Encryption      *Encryption // nil: none is declared
}

// Backend says where the stack's store is.
type Backend struct {
	Kind   BackendKind
	Path   string // local: the directory, default ".fray" under Config.Dir
	Bucket string // gcs
	Prefix string // gcs, without slashes at its ends
	KMSKey string // gcs: with which the service encrypts what is written
}

// Encryption says who may read the state and saved plans. At most one of its
// fields is set; with neither, encryption is to be turned off.
type Encryption struct {
	Recipients []string // age and SSH public keys
	KMSKey     string   // a URL
}

// BackendKind is a closed set of state backends.
type BackendKind string

// The backends.
const (
	BackendLocal BackendKind = "local"
	BackendGCS   BackendKind = "gcs"
)

// Desired is what the files ask for: the part of a Config that is planned
// against, recorded in state, and carried by a saved plan. All slices are in
// Address order.
type Desired struct {
	Providers    []Provider    `json:"providers,omitempty"`
	Namespaces   []Namespace   `json:"namespaces,omitempty"`
	Reservations []Reservation `json:"reservations,omitempty"`
	Groups       []JobGroup    `json:"groups,omitempty"`
	Jobs         []Job         `json:"jobs,omitempty"` // and the replicas of actor services
	// Notifications are where the controller reports what happens.
	Notifications []Notification `json:"notifications,omitempty"`
	Controller    *Controller    `json:"controller,omitempty"`
	// Local is set by --local: all runs on this machine, and what names places of a cloud says nothing.
	Local bool `json:"local,omitempty"`
}

// Provider is a provider block: where capacity comes from.
type Provider struct {
	Name ProviderName `json:"name"`
	// Local limits; zero means unlimited.
	CPU    float64 `json:"cpu,omitempty"`    // cores
	Memory Bytes   `json:"memory,omitempty"` // bytes
	Slices int     `json:"slices,omitempty"`
	GPU    GPU     `json:"gpu,omitzero"` // of this machine
	// GCP.
	Project string    `json:"project,omitempty"`
	Zones   []string  `json:"zones,omitempty"`  // in order of preference
	Cloud   CloudSpec `json:"cloud,omitzero"`   // what its slices have unless their jobs say otherwise
	Offers  []Market  `json:"offers,omitempty"` // in place of the built-in table, by name
	// Ray.
	Address      string `json:"address,omitempty"`       // of the cluster's dashboard, "http://HOST:8265"
	RayNamespace string `json:"ray_namespace,omitempty"` // of the actors of fray's jobs there
	TokenFile    string `json:"token_file,omitempty"`    // with the cluster's token, absolute; "": where Ray finds it
}

// ProviderName is a closed set of providers.
type ProviderName string

// The providers.
const (
	ProviderLocal ProviderName = "local"
	ProviderGCP   ProviderName = "gcp"
	ProviderRay   ProviderName = "ray"
)

// ProviderNames are all of them.
func ProviderNames() []ProviderName {
	return []ProviderName{ProviderLocal, ProviderGCP, ProviderRay}
}

// Namespace is a scope for actor names, access and fair share.
type Namespace struct {
	Addr     Address `json:"addr"`
	MaxChips int     `json:"max_chips,omitempty"` // that its jobs have at once; 0: no limit
	MaxCPU   float64 `json:"max_cpu,omitempty"`   // cores of hosts without TPUs; 0: no limit
	// Budget is how many chips its jobs may have before the rest of them
	// yield as those of band batch do; 0: no such bound.
	Budget int `json:"budget,omitempty"`
	// Weight is its part of what all compete for, among those of the others; 0: 1.
	Weight float64 `json:"weight,omitempty"`
	// IdleTimeout is how long a slice that a job gives back is kept for the
	// next one of the namespace; 0: not at all; launched jobs: LaunchedIdleTimeout.
	IdleTimeout Duration    `json:"idle_timeout,omitempty"`
	Users       []UserShare `json:"users,omitempty"` // sorted by name
	Cost        CostBudget  `json:"cost,omitzero"`
}

// UserShare bounds one user within a namespace; the fields are as of Namespace.
type UserShare struct {
	Name     string  `json:"name"`
	MaxChips int     `json:"max_chips,omitempty"`
	MaxCPU   float64 `json:"max_cpu,omitempty"`
	Budget   int     `json:"budget,omitempty"`
	Weight   float64 `json:"weight,omitempty"`
}

// Capacity is a number of slices of one shape: one end of a reservation.
type Capacity struct {
	TPU    string  `json:"tpu,omitempty"`
	GPU    GPU     `json:"gpu,omitzero"`
	CPU    float64 `json:"cpu,omitempty"`
	Memory Bytes   `json:"memory,omitempty"`
	Disk   Bytes   `json:"disk,omitempty"`
	Slices int     `json:"slices"`
}

// Growth is a closed set of when a reservation grows beyond its min.
type Growth string

// The growths. The zero Growth is GrowthDemand.
const (
	GrowthDemand Growth = "demand" // for jobs that wait
	// GrowthOffer keeps one slice more than is used, up to the max, for jobs
	// that start more workers when they see it.
	GrowthOffer Growth = "offer"
)

// Reservation is a pool of slices that jobs may draw from.
type Reservation struct {
	Addr     Address      `json:"addr"`
	Provider ProviderName `json:"provider"`
	Min      Capacity     `json:"min"`
	Max      Capacity     `json:"max"`
	Priority int          `json:"priority,omitempty"`
	TTL      Duration     `json:"ttl,omitempty"` // since it was made or changed; 0: no end
	// IdleTimeout is how long a slice beyond the min may idle before it is
	// released; 0: DefaultIdleTimeout.
	IdleTimeout Duration `json:"idle_timeout,omitempty"`
	Growth      Growth   `json:"growth,omitempty"`
	// Namespace whose launched jobs may draw from it without naming it; "": none.
	Namespace   string    `json:"namespace,omitempty"`
	Preemptible bool      `json:"preemptible"`
	Zones       []string  `json:"zones,omitempty"`
	Regions     []string  `json:"regions,omitempty"`
	Cloud       CloudSpec `json:"cloud,omitzero"`
	Lifecycle   Lifecycle `json:"lifecycle,omitzero"`
}

// JobGroup is a set of jobs and services that are placed together, all or none, and of
// reservations near them.
type JobGroup struct {
	Addr       Address `json:"addr"`
	Namespace  string  `json:"namespace,omitempty"`
	SameRegion bool    `json:"same_region,omitempty"`
	SameZone   bool    `json:"same_zone,omitempty"`
}

// Controller declares where `fray watch` runs.
type Controller struct {
	Provider ProviderName `json:"provider"`
}

// Output is an output block's value. A sensitive one is in Secret (as JSON, to
// be sealed before it is recorded), any other in Value.
type Output struct {
	Value       json.RawMessage `json:"value,omitempty"` // JSON; nil when unknown or sensitive
	Secret      Text            `json:"secret,omitzero"`
	Unknown     bool            `json:"unknown,omitempty"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Description string          `json:"description,omitempty"`
}

// Duration is a time.Duration that reads and writes as "1h30m".
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: want a number with a unit, such as \"30s\" or \"12h\"", text)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// Bytes is a size in bytes; in HCL "512m", "8g", "1.5TiB" or a number.
type Bytes int64

func (b Bytes) String() string {
	for _, unit := range []struct {
		size   Bytes
		suffix string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= unit.size {
			return strconv.FormatFloat(float64(b)/float64(unit.size), 'g', 4, 64) + " " + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// EqualReservations leaves out the lifecycle, as EqualJobs does: it is no part of
// the reservation's spec.
func EqualReservations(a, b *Reservation) bool {
	return a.Addr == b.Addr && a.Provider == b.Provider && a.Min == b.Min && a.Max == b.Max &&
		a.Priority == b.Priority && a.TTL == b.TTL && a.IdleTimeout == b.IdleTimeout && a.Growth == b.Growth && a.Namespace == b.Namespace && a.Preemptible == b.Preemptible && a.Cloud == b.Cloud &&
		slices.Equal(a.Zones, b.Zones) && slices.Equal(a.Regions, b.Regions)
}

// EqualNamespaces reports whether two specs are the same.
func EqualNamespaces(a, b *Namespace) bool {
	return a.Addr == b.Addr && a.MaxChips == b.MaxChips && a.MaxCPU == b.MaxCPU && a.Budget == b.Budget &&
		a.Weight == b.Weight && a.IdleTimeout == b.IdleTimeout && a.Cost == b.Cost && slices.Equal(a.Users, b.Users)
}
