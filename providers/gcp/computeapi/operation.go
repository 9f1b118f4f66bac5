package computeapi

// Operation is a change that was asked for. The statuses are PENDING, RUNNING and DONE.
type Operation struct {
	Kind                string    `json:"kind,omitempty"`
	ID                  uint64    `json:"id,omitzero,string"`
	Name                string    `json:"name,omitempty"`
	OperationType       string    `json:"operationType,omitempty"`
	Status              string    `json:"status,omitempty"`
	StatusMessage       string    `json:"statusMessage,omitempty"`
	Progress            int32     `json:"progress"`
	TargetLink          string    `json:"targetLink,omitempty"`
	SelfLink            string    `json:"selfLink,omitempty"`
	Zone                string    `json:"zone,omitempty"`
	Region              string    `json:"region,omitempty"`
	User                string    `json:"user,omitempty"`
	InsertTime          string    `json:"insertTime,omitempty"`
	StartTime           string    `json:"startTime,omitempty"`
	EndTime             string    `json:"endTime,omitempty"`
	Error               ErrorList `json:"error,omitzero"`
	HTTPErrorMessage    string    `json:"httpErrorMessage,omitempty"`
	HTTPErrorStatusCode int32     `json:"httpErrorStatusCode,omitzero"`
}

// The statuses of operations.
const (
	OperationRunning = "RUNNING"
	OperationDone    = "DONE"
)

// ErrorList is what an operation has failed with.
type ErrorList struct {
	Errors []Error `json:"errors,omitempty"`
}

// Error is one of several errors.
type Error struct {
	Code         string        `json:"code,omitempty"` // "ZONE_RESOURCE_POOL_EXHAUSTED"
	Message      string        `json:"message,omitempty"`
	ErrorDetails []ErrorDetail `json:"errorDetails,omitempty"`
}

// ErrorDetail is for programs.
type ErrorDetail struct {
	ErrorInfo ErrorInfo `json:"errorInfo,omitzero"`
	QuotaInfo QuotaInfo `json:"quotaInfo,omitzero"`
}

// ErrorInfo is a cause.
type ErrorInfo struct {
	Reason    string            `json:"reason,omitempty"`
	Domain    string            `json:"domain,omitempty"`
	Metadatas map[string]string `json:"metadatas,omitempty"`
}

// QuotaInfo is the quota that was exceeded.
type QuotaInfo struct {
	MetricName string            `json:"metricName,omitempty"`
	LimitName  string            `json:"limitName,omitempty"`
	Limit      float64           `json:"limit,omitzero"`
	Dimensions map[string]string `json:"dimensions,omitempty"`
}
