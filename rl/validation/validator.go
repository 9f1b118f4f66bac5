// Package validation is the state machine of a validator: it collects the scores of validation trajectories and
// makes means of them.
//
// It has no clock, no lock and no I/O; package roles hosts it. Start with Validator.
package validation

import (
	"errors"
	"math"

	"github.com/fray-ml/fray/rl"
)

// ErrNoTrajectories is a validation of which no trajectory came.
var ErrNoTrajectories = errors.New("no validation trajectories were put")

// Header is what is read of a validation trajectory.
type Header struct {
	TaskID     string             `json:"task_id,omitempty"`
	DataSource string             `json:"data_source,omitempty"`
	Scores     map[string]float64 `json:"scores"`
}

// HeaderOf reads a trajectory's header: an rl.Header, whose scores may be of any type. Those that are no finite numbers
// are left out.
func HeaderOf(wire map[string]any) Header {
	h := Header{Scores: map[string]float64{}}
	h.TaskID, _ = wire["task_id"].(string)
	h.DataSource, _ = wire["data_source"].(string)
	scores, _ := wire["scores"].(map[string]any)
	for name, score := range scores {
		switch n := score.(type) {
		case float64:
			if !math.IsNaN(n) && !math.IsInf(n, 0) {
				h.Scores[name] = n
			}
		case int64:
			h.Scores[name] = float64(n)
		case uint64:
			h.Scores[name] = float64(n)
		}
	}
	return h
}

// result is one trajectory's.
type result struct {
	Source string             `json:"source,omitempty"`
	Scores map[string]float64 `json:"scores"`
}

// State is a validator as JSON can hold it.
type State struct {
	Results []result        `json:"results"`
	Seen    map[string]bool `json:"seen"`
}

// Validator holds the scores of one validation. Its zero value has none.
type Validator struct{ state State }

// Put stores a trajectory's scores; it always succeeds. A task that comes again counts once.
func (v *Validator) Put(h Header) rl.Outcome {
	if h.TaskID != "" {
		if v.state.Seen[h.TaskID] {
			return rl.Success
		}
		if v.state.Seen == nil {
			v.state.Seen = map[string]bool{}
		}
		v.state.Seen[h.TaskID] = true
	}
	v.state.Results = append(v.state.Results, result{Source: h.DataSource, Scores: h.Scores})
	return rl.Success
}

// Len is how many trajectories were put.
func (v *Validator) Len() int { return len(v.state.Results) }

// IsComplete reports whether all validation tasks are rolled out, as a reading of their loader has it.
func IsComplete(loader rl.LoaderStatus) bool { return loader.Finished && loader.Leased == 0 }

// mean is of the scores of one name.
type mean struct {
	sum float64
	n   int
}

// Metrics are the mean of each score as "val/NAME", of each source too as "val/SOURCE/NAME" where trajectories
// name one, and "val/num_samples". It clears the validator. Without trajectories it is ErrNoTrajectories.
func (v *Validator) Metrics() (map[string]float64, error) {
	if len(v.state.Results) == 0 {
		return nil, ErrNoTrajectories
	}
	means := map[string]*mean{}
	add := func(name string, score float64) {
		m := means[name]
		if m == nil {
			m = &mean{}
			means[name] = m
		}
		m.sum += score
		m.n++
	}
	for _, r := range v.state.Results {
		for name, score := range r.Scores {
			add("val/"+name, score)
			if r.Source != "" {
				add("val/"+r.Source+"/"+name, score)
			}
		}
	}
	out := map[string]float64{"val/num_samples": float64(len(v.state.Results))}
	for name, m := range means {
		out[name] = m.sum / float64(m.n)
	}
	v.Clear()
	return out, nil
}

// Clear forgets all trajectories.
func (v *Validator) Clear() { v.state = State{} }

// Snapshot is the state now.
func (v *Validator) Snapshot() State { return v.state }

// Restore makes the validator what it was at Snapshot.
func (v *Validator) Restore(state State) { v.state = state }
