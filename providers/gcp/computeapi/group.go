package computeapi

// InstanceGroupManager is a managed instance group.
type InstanceGroupManager struct {
	Kind                    string                `json:"kind,omitempty"`
	ID                      uint64                `json:"id,omitzero,string"`
	Name                    string                `json:"name,omitempty"`
	Description             string                `json:"description,omitempty"`
	Zone                    string                `json:"zone,omitempty"`
	SelfLink                string                `json:"selfLink,omitempty"`
	CreationTimestamp       string                `json:"creationTimestamp,omitempty"`
	Fingerprint             string                `json:"fingerprint,omitempty"`
	BaseInstanceName        string                `json:"baseInstanceName,omitempty"`
	InstanceGroup           string                `json:"instanceGroup,omitempty"`
	InstanceTemplate        string                `json:"instanceTemplate,omitempty"`
	Versions                []GroupVersion        `json:"versions,omitempty"`
	TargetSize              *int32                `json:"targetSize,omitzero"` // nil: a patch leaves it as it is
	TargetSizePolicy        TargetSizePolicy      `json:"targetSizePolicy,omitzero"`
	ResourcePolicies        GroupResourcePolicies `json:"resourcePolicies,omitzero"`
	InstanceLifecyclePolicy LifecyclePolicy       `json:"instanceLifecyclePolicy,omitzero"`
	UpdatePolicy            UpdatePolicy          `json:"updatePolicy,omitzero"`
	AllInstancesConfig      *AllInstancesConfig   `json:"allInstancesConfig,omitzero"`
	CurrentActions          GroupActions          `json:"currentActions,omitzero"`
	Status                  GroupStatus           `json:"status,omitzero"`
}

// Size is how many machines the group is to have.
func (g *InstanceGroupManager) Size() int {
	if g.TargetSize == nil {
		return 0
	}
	return int(*g.TargetSize)
}

// GroupVersion is a template that machines of a group are made from.
type GroupVersion struct {
	Name             string `json:"name,omitempty"`
	InstanceTemplate string `json:"instanceTemplate,omitempty"`
}

// TargetSizePolicy is whether a group gets its machines one by one or all at once.
type TargetSizePolicy struct {
	Mode string `json:"mode,omitempty"` // "BULK"
}

// GroupResourcePolicies are the policies that a group's machines are made under.
type GroupResourcePolicies struct {
	WorkloadPolicy string `json:"workloadPolicy,omitempty"`
}

// LifecyclePolicy is what a group does about a machine that fails.
type LifecyclePolicy struct {
	DefaultActionOnFailure string `json:"defaultActionOnFailure,omitempty"`
}

// UpdatePolicy is how a group brings a change to its machines.
type UpdatePolicy struct {
	Type string `json:"type,omitempty"` // "OPPORTUNISTIC"
}

// AllInstancesConfig is what holds for all machines of a group, beside its template.
type AllInstancesConfig struct {
	Properties PropertiesPatch `json:"properties,omitzero"`
}

// PropertiesPatch is what it replaces.
type PropertiesPatch struct {
	Labels   map[string]string `json:"labels,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// GroupActions are how many machines a group does something to.
type GroupActions struct {
	Abandoning             int32 `json:"abandoning"`
	Creating               int32 `json:"creating"`
	CreatingWithoutRetries int32 `json:"creatingWithoutRetries"`
	Deleting               int32 `json:"deleting"`
	None                   int32 `json:"none"`
	Recreating             int32 `json:"recreating"`
	Refreshing             int32 `json:"refreshing"`
	Restarting             int32 `json:"restarting"`
	Verifying              int32 `json:"verifying"`
}

// GroupStatus is how a group stands.
type GroupStatus struct {
	IsStable              bool           `json:"isStable"`
	BulkInstanceOperation *BulkOperation `json:"bulkInstanceOperation,omitzero"`
}

// BulkOperation is how making all machines at once goes.
type BulkOperation struct {
	InProgress        bool          `json:"inProgress"`
	LastProgressCheck ProgressCheck `json:"lastProgressCheck,omitzero"`
}

// ProgressCheck is what the service found last.
type ProgressCheck struct {
	Error     ErrorList `json:"error,omitzero"`
	Timestamp string    `json:"timestamp,omitempty"`
}

// ManagedInstance is a machine that a group has, or is to have.
type ManagedInstance struct {
	ID             uint64         `json:"id,omitzero,string"`
	Name           string         `json:"name,omitempty"`
	Instance       string         `json:"instance,omitempty"`
	InstanceStatus string         `json:"instanceStatus,omitempty"` // "": it is not there
	CurrentAction  string         `json:"currentAction,omitempty"`
	LastAttempt    ManagedAttempt `json:"lastAttempt,omitzero"`
}

// ManagedAttempt is the last try to make a machine.
type ManagedAttempt struct {
	Errors ErrorList `json:"errors,omitzero"`
}

// ManagedInstanceList is a page of the machines of a group.
type ManagedInstanceList struct {
	ManagedInstances []ManagedInstance `json:"managedInstances,omitempty"`
	NextPageToken    string            `json:"nextPageToken,omitempty"`
}

// GroupErrorList is a page of the errors of a group.
type GroupErrorList struct {
	Items         []GroupError `json:"items,omitempty"`
	NextPageToken string       `json:"nextPageToken,omitempty"`
}

// GroupError is a failure to make a machine of a group.
type GroupError struct {
	Error                 CodedError         `json:"error,omitzero"`
	Timestamp             string             `json:"timestamp,omitempty"`
	InstanceActionDetails GroupActionDetails `json:"instanceActionDetails,omitzero"`
}

// CodedError is an error without details.
type CodedError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// GroupActionDetails is what failed, of which machine.
type GroupActionDetails struct {
	Action   string `json:"action,omitempty"`
	Instance string `json:"instance,omitempty"`
}

// ResizeRequest asks for machines of a group, whenever there is capacity.
type ResizeRequest struct {
	Kind                 string       `json:"kind,omitempty"`
	ID                   uint64       `json:"id,omitzero,string"`
	Name                 string       `json:"name,omitempty"`
	Description          string       `json:"description,omitempty"`
	Zone                 string       `json:"zone,omitempty"`
	SelfLink             string       `json:"selfLink,omitempty"`
	CreationTimestamp    string       `json:"creationTimestamp,omitempty"`
	ResizeBy             int32        `json:"resizeBy,omitzero"`
	RequestedRunDuration Duration     `json:"requestedRunDuration,omitzero"`
	State                string       `json:"state,omitempty"` // "ACCEPTED"
	Status               ResizeStatus `json:"status,omitzero"`
}

// ResizeStatus is how a resize request stands.
type ResizeStatus struct {
	Error       ErrorList     `json:"error,omitzero"`
	LastAttempt ResizeAttempt `json:"lastAttempt,omitzero"`
}

// ResizeAttempt is the last try to carry it out.
type ResizeAttempt struct {
	Error ErrorList `json:"error,omitzero"`
}
