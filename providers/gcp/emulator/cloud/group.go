package cloud

import (
	"maps"
	"slices"
	"time"
)

// Kind is a closed set of what a group is to its API.
type Kind string

// The kinds. Names are unique per project, zone and kind.
const (
	KindNode     Kind = "node"     // of the TPU API
	KindInstance Kind = "instance" // a virtual machine of Compute Engine
	KindGroup    Kind = "group"    // a managed instance group
	KindQueued   Kind = "queued"   // a queued resource: the key of a Request, never of a Group
)

// Key names a group or a request.
type Key struct {
	Project string
	Zone    string
	Kind    Kind
	Name    string
}

// Tier is a closed set of claims on capacity.
type Tier string

// The tiers.
const (
	TierOnDemand Tier = "on-demand"
	TierSpot     Tier = "spot"     // preemptible ones too; may be preempted at any time
	TierReserved Tier = "reserved" // draws from the zone's reserved capacity
)

// Spec is what is asked for.
type Spec struct {
	Key
	// Type names the capacity drawn from, in units of chips or cores: a TPU
	// generation "v5litepod", or a machine family "n2".
	Type            string
	Units           int    // of the whole group, at least 1
	Machines        int    // at least 1
	AcceleratorType string // "v5litepod-16", "" of a plain machine
	MachineType     string
	GPUs            int    // of each machine
	BootImage       string // that machines start from, as the caller named it
	RuntimeVersion  string
	Tier            Tier
	// MaxRun ends the group that long after it became ready; 0: never.
	MaxRun time.Duration
	// VanishAtEnd removes the group by itself once it is preempted or has run
	// for MaxRun, instead of leaving it for its owner to delete.
	VanishAtEnd    bool
	Labels         map[string]string
	Metadata       map[string]string
	ServiceAccount string
	Instances      []string // names of the machines; nil: made up from the ID
	External       bool     // machines get external addresses too
	// Detail is the server's own: whatever it needs to show the group. It must not be
	// changed once handed in; Update replaces it.
	Detail any
	// Changed is called after every change of the group with what it is now, its
	// removal included (StateGone); in order, without the model's lock.
	Changed func(*Group)
}

// State is a closed set of states, those of a TPU node and two more.
type State string

// The states.
const (
	StateCreating   State = "CREATING"
	StateReady      State = "READY"
	StateRestarting State = "RESTARTING"
	StateReimaging  State = "REIMAGING"
	StateRepairing  State = "REPAIRING"
	StateStopping   State = "STOPPING"
	StateStopped    State = "STOPPED"
	StateStarting   State = "STARTING"
	StatePreempted  State = "PREEMPTED"
	StateTerminated State = "TERMINATED"
	StateHiding     State = "HIDING"
	StateHidden     State = "HIDDEN"
	StateUnhiding   State = "UNHIDING"
	StateUnknown    State = "UNKNOWN"
	StateDeleting   State = "DELETING"
	StateGone       State = "GONE" // removed; only Changed sees it
)

// Cause is a closed set of why a group ended.
type Cause string

// The causes; "" while it has not ended.
const (
	CausePreempted Cause = "preempted"
	CauseMaxRun    Cause = "max run"
	CauseStopped   Cause = "stopped" // by its owner
)

// Recoverable reports whether the group may run again: it has not ended, or its owner
// stopped it and may start it again.
func (c Cause) Recoverable() bool { return c == "" || c == CauseStopped }

// Group is a group at one moment. It never changes.
type Group struct {
	Spec
	ID            int64 // unique for ever
	State         State // what it is
	Shown         State // what the API shows
	Cause         Cause
	HealthUnknown bool // the API leaves out health and endpoints
	Queued        string
	Created       time.Time
	Ready         time.Time // when it first was, zero before
	Ended         time.Time // when it was preempted or stopped
	Hosts         []Host
	// Maintenance states that one is announced or going on.
	Maintenance bool
}

// Host is one machine of a group at one moment. It has none before the group has
// capacity.
type Host struct {
	ID              string
	Instance        string
	Address         string
	External        string // shown where the group is External
	On              bool
	Bad             bool
	Boot            time.Duration
	GuestAttributes map[GuestAttributeKey]string // guest attributes
}

// GuestAttributeKey names a guest attribute.
type GuestAttributeKey struct{ Namespace, Key string }

// machine describes one host to [Hosts].
func (g *Group) machine(worker int) Machine {
	addresses := make([]string, len(g.Hosts))
	for i := range g.Hosts {
		addresses[i] = g.Hosts[i].Address
	}
	h := g.Hosts[worker]
	return Machine{
		ID: h.ID, Name: g.Name, Instance: h.Instance, Kind: g.Kind, Zone: g.Zone, Project: g.Project,
		Worker: worker, Workers: len(g.Hosts), AcceleratorType: g.AcceleratorType, MachineType: g.MachineType,
		GPUs: g.GPUs, BootImage: g.BootImage,
		RuntimeVersion: g.RuntimeVersion, Addresses: addresses,
		Labels: maps.Clone(g.Labels), Metadata: maps.Clone(g.Metadata),
		ServiceAccount: g.ServiceAccount, Preemptible: g.Tier == TierSpot, Boot: h.Boot, Bad: h.Bad,
	}
}

// copied returns a copy that may be changed but for what Spec refers to.
func (g *Group) copied() *Group {
	c := *g
	c.Hosts = slices.Clone(g.Hosts)
	return &c
}
