package computeapi

// Instance is a machine. Its types are links, or "zones/Z/machineTypes/T".
type Instance struct {
	InstanceProperties

	Kind               string         `json:"kind,omitempty"`
	ID                 uint64         `json:"id,omitzero,string"`
	Name               string         `json:"name,omitempty"`
	Zone               string         `json:"zone,omitempty"` // a link
	SelfLink           string         `json:"selfLink,omitempty"`
	Status             string         `json:"status,omitempty"` // "RUNNING"
	StatusMessage      string         `json:"statusMessage,omitempty"`
	CreationTimestamp  string         `json:"creationTimestamp,omitempty"`
	LastStartTimestamp string         `json:"lastStartTimestamp,omitempty"`
	LastStopTimestamp  string         `json:"lastStopTimestamp,omitempty"`
	Fingerprint        string         `json:"fingerprint,omitempty"`
	LabelFingerprint   string         `json:"labelFingerprint,omitempty"`
	Params             InstanceParams `json:"params,omitzero"`
}

// InstanceParams are options of the creation of an instance, which it does not show.
type InstanceParams struct {
	RequestValidForDuration Duration `json:"requestValidForDuration,omitzero"`
}

// Duration is a span of time.
type Duration struct {
	Seconds int64 `json:"seconds,omitzero,string"`
}

// Metadata is what a machine reads of its metadata server.
type Metadata struct {
	Kind        string         `json:"kind,omitempty"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	Items       []MetadataItem `json:"items,omitempty"`
}

// MetadataItem is one entry.
type MetadataItem struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value"`
}

// Tags are network tags.
type Tags struct {
	Items       []string `json:"items,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
}

// AttachedDisk is a disk of an instance: an existing one by its Source, or a new one.
type AttachedDisk struct {
	Boot             bool        `json:"boot,omitzero"`
	AutoDelete       bool        `json:"autoDelete"`
	DeviceName       string      `json:"deviceName,omitempty"`
	Mode             string      `json:"mode,omitempty"` // "READ_ONLY"
	Source           string      `json:"source,omitempty"`
	InitializeParams *DiskParams `json:"initializeParams,omitzero"`
}

// DiskParams are what a new disk is made with.
type DiskParams struct {
	SourceImage string `json:"sourceImage,omitempty"`
	DiskSizeGB  int64  `json:"diskSizeGb,omitzero,string"`
	DiskType    string `json:"diskType,omitempty"`
}

// NetworkInterface connects an instance with a network.
type NetworkInterface struct {
	Name          string         `json:"name,omitempty"`
	Network       string         `json:"network,omitempty"`
	Subnetwork    string         `json:"subnetwork,omitempty"`
	NetworkIP     string         `json:"networkIP,omitempty"`
	IPv6Address   string         `json:"ipv6Address,omitempty"`
	NICType       string         `json:"nicType,omitempty"`
	Fingerprint   string         `json:"fingerprint,omitempty"`
	AccessConfigs []AccessConfig `json:"accessConfigs,omitempty"`
}

// AccessConfig is an external address.
type AccessConfig struct {
	Name  string `json:"name,omitempty"`
	Type  string `json:"type,omitempty"` // "ONE_TO_ONE_NAT"
	NatIP string `json:"natIP,omitempty"`
}

// AcceleratorConfig are attached GPUs.
type AcceleratorConfig struct {
	AcceleratorType  string `json:"acceleratorType,omitempty"`
	AcceleratorCount int32  `json:"acceleratorCount,omitzero"`
}

// Scheduling is how an instance gets capacity and loses it.
type Scheduling struct {
	ProvisioningModel         string   `json:"provisioningModel,omitempty"` // "SPOT"
	InstanceTerminationAction string   `json:"instanceTerminationAction,omitempty"`
	OnHostMaintenance         string   `json:"onHostMaintenance,omitempty"`
	AutomaticRestart          *bool    `json:"automaticRestart,omitzero"` // nil: the service's choice
	Preemptible               bool     `json:"preemptible,omitzero"`
	MaxRunDuration            Duration `json:"maxRunDuration,omitzero"`
}

// ReservationAffinity is which reservations an instance draws from.
type ReservationAffinity struct {
	ConsumeReservationType string   `json:"consumeReservationType,omitempty"`
	Key                    string   `json:"key,omitempty"`
	Values                 []string `json:"values,omitempty"`
}

// ServiceAccount is the account of an instance's programs.
type ServiceAccount struct {
	Email  string   `json:"email,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
}

// LabelsRequest replaces the labels of an instance.
type LabelsRequest struct {
	Labels           map[string]string `json:"labels,omitempty"`
	LabelFingerprint string            `json:"labelFingerprint,omitempty"`
}

// GuestAttributes are what an instance's programs have reported.
type GuestAttributes struct {
	Kind       string               `json:"kind,omitempty"`
	QueryPath  string               `json:"queryPath,omitempty"`
	QueryValue GuestAttributesValue `json:"queryValue,omitzero"`
}

// GuestAttributesValue is a list of them.
type GuestAttributesValue struct {
	Items []GuestAttribute `json:"items,omitempty"`
}

// GuestAttribute is one value, by namespace and key.
type GuestAttribute struct {
	Namespace string `json:"namespace,omitempty"`
	Key       string `json:"key,omitempty"`
	Value     string `json:"value,omitempty"`
}
