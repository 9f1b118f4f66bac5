package access

import (
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// View is the stack as one step left it. Nothing in it may be changed.
type View struct {
	Doc *state.Document
	// Wanted is what is declared and what was launched, as the plan sees it.
	Wanted *schema.Desired
	Plan   *plan.Plan
	// Hosts are the reports that the step saw, by slice and in host order.
	Hosts    map[string][]plan.Host
	Attended time.Duration // see plan.Observed
	// Inventories and Unreachable are what the providers answered to the step.
	Inventories map[schema.ProviderName]schema.Inventory
	Unreachable map[schema.ProviderName]plan.Unreachable
	Lease       store.Lease
	At          time.Time // zero: no step has ended yet
	Took        time.Duration
}

// Report is the last report of a host that the step saw.
func (v *View) Report(slice string, host int) (state.HostReport, bool) {
	hosts := v.Hosts[slice]
	for i := range hosts {
		if hosts[i].Host == host {
			return hosts[i].HostReport, true
		}
	}
	return state.HostReport{}, false
}

// Reports are the last reports of all hosts that the step saw.
func (v *View) Reports(yield func(*state.HostReport) bool) {
	for _, hosts := range v.Hosts {
		for i := range hosts {
			if !yield(&hosts[i].HostReport) {
				return
			}
		}
	}
}

// Agent is the report of the host whose agent serves a task, nil if that serves no
// API. For a packed task it is the host of the slice on which it is placed.
func (v *View) Agent(t *state.Task) *state.HostReport {
	slice, host := t.Slice, t.Host
	if s := v.Doc.Slices[slice]; s != nil && s.Spec.On != "" {
		slice, host = s.Spec.On, s.Spec.OnHost
	}
	report, found := v.Report(slice, host)
	if !found || report.API == "" {
		return nil
	}
	return &report
}
