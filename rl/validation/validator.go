// Package validation is the state machine of a validator: it collects the scores of validation trajectories and
// makes means of them.
//
// It has no clock, no lock and no I/O; package roles hosts it. Start with Validator.
package validation

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/rl"
)

// ErrNoTrajectories is a validation of which no trajectory came.
var ErrNoTrajectories = errors.New("no validation trajectories were put")

// Header is what is read of a validation trajectory.
type Header struct {
	TaskID     string             `json:"task_id,omitempty"`
	Lease      string             `json:"lease,omitempty"`
	DataSource string             `json:"data_source,omitempty"`
	Scores     map[string]float64 `json:"scores"`
}

// HeaderOf reads a trajectory's header: an rl.Header, whose scores may be of any type. Those that are no finite numbers
// are left out.
func HeaderOf(wire map[string]any) Header {
	h := Header{Scores: map[string]float64{}}
	h.TaskID, _ = wire["task_id"].(string)
	h.Lease, _ = wire["lease"].(string)
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
	TaskID string             `json:"task_id,omitempty"`
	Lease  string             `json:"lease,omitempty"`
	Source string             `json:"source,omitempty"`
	Scores map[string]float64 `json:"scores"`
}

// State is a validator as JSON can hold it.
type State struct {
	Results []result `json:"results"`
	// Last is the validation that was settled last; nil: none was since the last Clear.
	Last *Measured `json:"last,omitempty"`
}

// Measured is a validation with its metrics.
type Measured struct {
	ID      string             `json:"id,omitempty"` // as the caller names the validation; "": it does not
	Samples int                `json:"samples"`      // the trajectories that were put first
	Metrics map[string]float64 `json:"metrics"`
}

// Validator holds the scores of one validation. Its zero value has none.
type Validator struct {
	results []result
	of      map[string]int // the result of a task
	last    *Measured
}

// Put stores a trajectory's scores; it always succeeds. A task counts once: with the scores of its first trajectory,
// or of that with the latest lease, since an earlier lease may be one of a former validation, by former weights.
func (v *Validator) Put(h Header) rl.Outcome {
	r := result{TaskID: h.TaskID, Lease: h.Lease, Source: h.DataSource, Scores: h.Scores}
	if i, ok := v.of[h.TaskID]; ok && h.TaskID != "" {
		if isLater(r.Lease, v.results[i].Lease) {
			v.results[i] = r
		}
		return rl.Success
	}
	v.add(r)
	return rl.Success
}

func (v *Validator) add(r result) {
	if r.TaskID != "" {
		if v.of == nil {
			v.of = map[string]int{}
		}
		v.of[r.TaskID] = len(v.results)
	}
	v.results = append(v.results, r)
}

// isLater reports whether one loader gave a lease after another: the IDs of its leases end with their number.
func isLater(id, than string) bool {
	of, number, ok := cutNumber(id)
	ofThan, thanNumber, okThan := cutNumber(than)
	return ok && okThan && of == ofThan && number > thanNumber
}

func cutNumber(lease string) (of string, number int64, ok bool) {
	at := strings.LastIndexAny(lease, "/-") + 1
	number, err := strconv.ParseInt(lease[at:], 10, 64)
	return lease[:at], number, err == nil
}

// Len is how many trajectories were put.
func (v *Validator) Len() int { return len(v.results) }

// IsComplete reports whether all validation tasks are rolled out, as a reading of their loader has it.
func IsComplete(loader rl.LoaderStatus) bool { return loader.Finished && loader.Leased == 0 }

// mean is of the scores of one name.
type mean struct {
	sum float64
	n   int
}

// Measure makes the metrics of a validation: the mean of each score as "val/NAME", of each source too as
// "val/SOURCE/NAME" where trajectories name one, and "val/num_samples". It changes nothing; Settle does. The validation
// that was settled last has its metrics again, by its ID. Without trajectories it is ErrNoTrajectories.
func (v *Validator) Measure(id string) (m Measured, isSettled bool, err error) {
	if id != "" && v.last != nil && v.last.ID == id {
		return *v.last, true, nil
	}
	if len(v.results) == 0 {
		return Measured{}, false, ErrNoTrajectories
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
	for _, r := range v.results {
		for name, score := range r.Scores {
			add("val/"+name, score)
			if r.Source != "" {
				add("val/"+r.Source+"/"+name, score)
			}
		}
	}
	out := map[string]float64{"val/num_samples": float64(len(v.results))}
	for name, m := range means {
		if !math.IsInf(m.sum, 0) {
			out[name] = m.sum / float64(m.n)
		}
	}
	return Measured{ID: id, Samples: len(v.results), Metrics: out}, false, nil
}

// Settle ends a validation that was measured: its trajectories are forgotten, those that were put since are not.
func (v *Validator) Settle(m Measured) {
	rest := v.results[min(m.Samples, len(v.results)):]
	v.results, v.of, v.last = nil, nil, &m
	for _, r := range rest {
		v.add(r)
	}
}

// Clear forgets all trajectories and metrics: another validation begins.
func (v *Validator) Clear() { *v = Validator{} }

// Snapshot is the state now.
func (v *Validator) Snapshot() State { return State{Results: slices.Clone(v.results), Last: v.last} }

// Restore makes the validator what it was at Snapshot.
func (v *Validator) Restore(state State) {
	*v = Validator{last: state.Last}
	for _, r := range state.Results {
		v.add(r)
	}
}
