package computeapi

// InstanceTemplate is what the instances of a managed group are made from.
type InstanceTemplate struct {
	Kind              string             `json:"kind,omitempty"`
	ID                uint64             `json:"id,omitzero,string"`
	Name              string             `json:"name,omitempty"`
	Description       string             `json:"description,omitempty"`
	Region            string             `json:"region,omitempty"` // "": global
	SelfLink          string             `json:"selfLink,omitempty"`
	CreationTimestamp string             `json:"creationTimestamp,omitempty"`
	Properties        InstanceProperties `json:"properties,omitzero"`
}

// InstanceProperties are what an instance is made with. Those of a template name types
// without a zone.
type InstanceProperties struct {
	Description         string              `json:"description,omitempty"`
	Labels              map[string]string   `json:"labels,omitempty"`
	MachineType         string              `json:"machineType,omitempty"`
	Metadata            Metadata            `json:"metadata,omitzero"`
	Tags                Tags                `json:"tags,omitzero"`
	Disks               []AttachedDisk      `json:"disks,omitempty"`
	NetworkInterfaces   []NetworkInterface  `json:"networkInterfaces,omitempty"`
	GuestAccelerators   []AcceleratorConfig `json:"guestAccelerators,omitempty"`
	Scheduling          Scheduling          `json:"scheduling,omitzero"`
	ReservationAffinity ReservationAffinity `json:"reservationAffinity,omitzero"`
	ServiceAccounts     []ServiceAccount    `json:"serviceAccounts,omitempty"`
	ResourcePolicies    []string            `json:"resourcePolicies,omitempty"`
}

// ResourcePolicy is a policy of a region; fray makes workload policies.
type ResourcePolicy struct {
	Kind              string          `json:"kind,omitempty"`
	ID                uint64          `json:"id,omitzero,string"`
	Name              string          `json:"name,omitempty"`
	Description       string          `json:"description,omitempty"`
	Region            string          `json:"region,omitempty"`
	SelfLink          string          `json:"selfLink,omitempty"`
	CreationTimestamp string          `json:"creationTimestamp,omitempty"`
	WorkloadPolicy    *WorkloadPolicy `json:"workloadPolicy,omitzero"` // nil: it is another kind
}

// WorkloadPolicy is how the machines of a group lie to each other.
type WorkloadPolicy struct {
	Type                    string `json:"type,omitempty"` // "HIGH_THROUGHPUT"
	AcceleratorTopology     string `json:"acceleratorTopology,omitempty"`
	AcceleratorTopologyMode string `json:"acceleratorTopologyMode,omitempty"`
}
