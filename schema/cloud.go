package schema

import (
	"maps"
	"slices"
	"strings"
)

// CloudSpec is what a slice on Google Cloud is asked for beyond its shape. It is
// comparable; in SliceSpec every field that matters is filled in.
type CloudSpec struct {
	Engine Engine `json:"engine,omitempty"` // "": by type and zone, see EngineOf
	// Provisioning says how capacity is got; "" asks for it at once.
	Provisioning Provisioning `json:"provisioning,omitempty"`
	// ValidUntil is how long a queued request may wait; 0: for ever.
	ValidUntil Duration `json:"valid_until,omitempty"`
	// MaxRun is after how long a flex-start slice ends.
	MaxRun Duration `json:"max_run,omitempty"`
	// ReservedIn names the cloud's reservation that is drawn from; "": any that fits.
	ReservedIn     string `json:"reserved_in,omitempty"`
	RuntimeVersion string `json:"runtime_version,omitempty"` // of a TPU slice; "": by generation
	Image          string `json:"image,omitempty"`           // boot image of Compute Engine machines; "": the provider's choice
	Network        string `json:"network,omitempty"`         // "": default
	Subnetwork     string `json:"subnetwork,omitempty"`
	ServiceAccount string `json:"service_account,omitempty"` // "": the project's default one
	// Disks are existing disks to attach, "NAME" or "NAME:ro", comma-separated.
	Disks string `json:"disks,omitempty"`
	// Live is what the API changes in place.
	Live CloudLive `json:"live,omitzero"`
}

// CloudLive is what may be changed of a slice without making it anew.
type CloudLive struct {
	Labels      string `json:"labels,omitempty"` // "key=value", sorted, comma-separated
	Tags        string `json:"tags,omitempty"`   // sorted, comma-separated
	InternalIPs bool   `json:"internal_ips,omitempty"`
}

// Engine is a closed set of the APIs that make slices.
type Engine string

// The engines.
const (
	EngineTPU Engine = "tpu" // the Cloud TPU API: nodes and queued resources
	EngineGCE Engine = "gce" // Compute Engine: instances and managed instance groups
)

// Provisioning is a closed set of ways to get capacity. Each but reserved is
// preemptible or not, as the slice says.
type Provisioning string

// The ways. The zero Provisioning asks for capacity that is there now.
const (
	ProvisioningQueued    Provisioning = "queued"     // waits in the cloud's queue
	ProvisioningReserved  Provisioning = "reserved"   // from a reservation with the cloud
	ProvisioningFlexStart Provisioning = "flex-start" // waits, then runs for MaxRun at most
)

// Fixed is the spec without what can be changed in place: slices that differ in
// it are different slices.
func (s SliceSpec) Fixed() SliceSpec {
	s.Cloud.Live = CloudLive{}
	return s
}

// SameFixed reports whether two specs are the same but for what can be changed in place.
func (s *SliceSpec) SameFixed(other *SliceSpec) bool {
	return *s == *other || s.Fixed() == other.Fixed()
}

// Market is where a TPU generation or machine type is offered, and for how much.
type Market struct {
	Name   string   `json:"name"`             // "v5litepod" or "n2-standard-8"
	Zones  []string `json:"zones,omitempty"`  // nil: as built in
	Engine Engine   `json:"engine,omitempty"` // "": as built in
	// US dollars for an hour of one chip, or of one machine of a machine type; 0: as built in.
	OnDemand float64 `json:"on_demand,omitempty"`
	Spot     float64 `json:"spot,omitempty"`
}

// JoinLabels writes labels as CloudLive holds them.
func JoinLabels(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

// LabelMap reads what JoinLabels wrote; it is not nil.
func (c CloudLive) LabelMap() map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(c.Labels, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[key] = value
		}
	}
	return labels
}

// TagList are the network tags, nil for none.
func (c CloudLive) TagList() []string {
	if c.Tags == "" {
		return nil
	}
	return strings.Split(c.Tags, ",")
}
