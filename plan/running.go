package plan

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Running is what runs at an address that a plan restarts, replaces or deletes: how much work
// is behind it.
type Running struct {
	Addr schema.Address `json:"address"`
	Verb Verb           `json:"action"`
	// Attempt is the number of a job's attempt, 0 of a reservation.
	Attempt int `json:"attempt,omitempty"`
	// Slices are how many it holds.
	Slices int       `json:"slices,omitempty"`
	Since  time.Time `json:"since"`
	// Seconds are how long it had run when the plan was made.
	Seconds int64 `json:"seconds"`
	// Checkpoint is what is known of its checkpoints, nil if nothing is.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// Duration is how long it had run when the plan was made.
func (r *Running) Duration() time.Duration { return time.Duration(r.Seconds) * time.Second }

// Checkpoint is where a job keeps checkpoints, and the last one if that is known.
type Checkpoint struct {
	Place string `json:"place"` // a directory or a URL, as the job is told
	// Last is the name of the last one, "" if it is not known.
	Last string `json:"last,omitempty"`
	// Seconds are how old it was when the plan was made.
	Seconds int64 `json:"seconds,omitempty"`
}

// Age is how old the last checkpoint was when the plan was made.
func (c *Checkpoint) Age() time.Duration { return time.Duration(c.Seconds) * time.Second }
