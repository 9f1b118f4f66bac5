package rollout

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// resultJSON is the second document of apply --json; fields are only ever added.
type resultJSON struct {
	FormatVersion string                              `json:"format_version"`
	Outcome       applyOutcome                        `json:"outcome"`
	Actions       map[string]int                      `json:"actions"`
	Jobs          map[schema.Address]schema.JobStatus `json:"jobs"`
	Pending       []pendingJSON                       `json:"pending"`
	Outputs       map[string]json.RawMessage          `json:"outputs"`
}

type pendingJSON struct {
	Address schema.Address `json:"address"`
	Reasons []string       `json:"reasons"`
}

// applyOutcome is how an apply ended; the exit code says the same.
type applyOutcome string

const (
	outcomeComplete    applyOutcome = "complete"
	outcomeFailed      applyOutcome = "failed"
	outcomePending     applyOutcome = "pending"
	outcomeInterrupted applyOutcome = "interrupted"
)

func outcomeOf(err error) applyOutcome {
	var e *terminal.Exit
	switch {
	case err == nil:
		return outcomeComplete
	case errors.As(err, &e) && e.Code == terminal.ExitPending:
		return outcomePending
	case errors.As(err, &e) && e.Code == terminal.ExitInterrupted:
		return outcomeInterrupted
	}
	return outcomeFailed
}

// printResult prints how apply --json ended.
func (r *conclusion) printResult(ended error) error {
	out := resultOf(r.stepper.Document(), cmp.Or(r.Follows, r.plan), ended)
	for _, w := range r.waiting() {
		out.Pending = append(out.Pending, pendingJSON{w.Addr, w.Reasons})
	}
	return r.Terminal.PrintJSON(out)
}

// resultOf is how a plan ended, without what still waits.
func resultOf(doc *state.Document, p *plan.Plan, ended error) resultJSON {
	out := resultJSON{
		FormatVersion: "1.0", Outcome: outcomeOf(ended), Actions: proposal.ActionCounts(p),
		Jobs:    map[schema.Address]schema.JobStatus{},
		Pending: []pendingJSON{},
		Outputs: map[string]json.RawMessage{},
	}
	for addr, j := range doc.Jobs {
		out.Jobs[addr] = j.Status
	}
	for name, o := range doc.Outputs {
		if !o.Sensitive && !o.Unknown {
			out.Outputs[name] = o.Value
		}
	}
	return out
}
