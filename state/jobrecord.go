package state

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// JobRecords are what became of jobs between two saves of the state.
type JobRecords struct {
	Records []JobRecord `json:"records"`
}

// JobRecord is what outlives a job's slices and the state: that it has run, and
// how it ended.
type JobRecord struct {
	ID   string         `json:"id"`
	Addr schema.Address `json:"address"`
	// Status is running for a job that has not ended, "" for one that is no more.
	Status      schema.JobStatus `json:"status,omitempty"`
	Reason      string           `json:"reason,omitempty"`
	Attempt     int              `json:"attempt,omitempty"`
	Failures    int              `json:"failures,omitempty"`
	Preemptions int              `json:"preemptions,omitempty"`
	EndedAt     time.Time        `json:"ended_at,omitzero"`
	// Tasks is how many tasks the last attempt of a job that has ended had.
	Tasks int `json:"tasks,omitempty"`
}

// Equal compares records as they are written.
func (r JobRecord) Equal(other JobRecord) bool {
	same := r.EndedAt.Equal(other.EndedAt)
	r.EndedAt = other.EndedAt
	return same && r == other
}
