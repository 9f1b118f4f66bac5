package rehearse

import (
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Rule is a closed set of what must hold in every rehearsal.
type Rule string

// The rules.
const (
	RuleLive      Rule = "nothing live is deleted"
	RuleForeign   Rule = "nothing foreign is touched"
	RuleOneNode   Rule = "one node for a slice"
	RuleOneRun    Rule = "one attempt of a job at a time"
	RuleOneGang   Rule = "one gang on a host"
	RuleBudget    Rule = "preemption spends no failure budget"
	RuleReason    Rule = "what is pending has a reason"
	RuleRate      Rule = "creations keep under the limit"
	RuleConverges Rule = "it converges once faults end"
	RuleLeaves    Rule = "destroy leaves nothing"
)

// Violation is something that happened and must not.
type Violation struct {
	Rule  Rule    `json:"rule"`
	Hours float64 `json:"hours"` // since the start
	Text  string  `json:"text"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (in hour %g)", v.Rule, v.Text, v.Hours)
}

// maxViolations is how many are kept: what follows from the first few says little.
const maxViolations = 20

// oracle knows nothing of how fray decides: it sees the calls that reach the
// cloud, the machines and their tasks, and that certain events never happen.
type oracle struct {
	start time.Time
	fleet *fleet
	// wanted reports whether a job is declared and, as the world has it, not done.
	wanted func(addr schema.Address) bool
	led    time.Time              // when the controller that leads began
	doc    func() *state.Document // as fray has it, to tell why it thinks that it may
	sizes  map[schema.Address]int // slices of each cohort

	running map[schema.Address]*gang
	found   []Violation
}

func newOracle(f *fleet, desired *schema.Desired) *oracle {
	o := &oracle{
		start: f.clock.Now(), fleet: f,
		sizes: map[schema.Address]int{}, running: map[schema.Address]*gang{},
	}
	for i := range desired.Jobs {
		j := &desired.Jobs[i]
		o.sizes[cohort(j.Addr)] += j.Resources.Slices
	}
	return o
}

func (o *oracle) violated(rule Rule, format string, args ...any) {
	if len(o.found) < maxViolations {
		o.found = append(o.found, Violation{Rule: rule, Hours: inHours(o.fleet.clock.Now().Sub(o.start)), Text: fmt.Sprintf(format, args...)})
	}
}

// deleting sees a deletion asked for. A slice may go when it has failed, when no job
// needs it any more, or to move elsewhere together with others that are not up.
func (o *oracle) deleting(name string) {
	o.fleet.mu.Lock()
	defer o.fleet.mu.Unlock()
	hosts := o.fleet.slices[name]
	if len(hosts) == 0 {
		return
	}
	spec := &hosts[0].spec
	switch g := hosts[0].gang; {
	case !o.wanted(spec.Owner) || !well(hosts):
	case g != nil && g.whole:
		o.violated(RuleLive, "slice %s is deleted while attempt %d of %s runs on it and all its hosts are well: %s", name, g.attempt, g.addr, o.why(name))
	case spec.Owner.Kind != schema.KindReservation && o.allUp(spec.Owner):
		o.violated(RuleLive, "slice %s of %s is deleted although all its hosts are well, and those of its other slices: %s", name, spec.Owner, o.why(name))
	}
}

// why is what fray has recorded against a slice.
func (o *oracle) why(name string) string {
	if s := o.doc().Slices[name]; s != nil {
		return fmt.Sprintf("%q, asked for at %s, born at %s", s.Terminating.Text, s.PendingSince.Sub(o.start), s.UpAt.Sub(o.start))
	}
	return "it is not recorded"
}

// well reports whether every host of a slice is up and nothing is wrong with it.
func well(hosts []*host) bool {
	for _, h := range hosts {
		if !h.up || h.machine.Bad || h.report.Notice != "" {
			return false
		}
	}
	return len(hosts) == hosts[0].spec.Hosts
}

// allUp reports whether all slices of a job, and of those that are placed
// together with it, are well.
func (o *oracle) allUp(owner schema.Address) bool {
	up := 0
	for _, hosts := range o.fleet.slices {
		if cohort(hosts[0].spec.Owner) != cohort(owner) {
			continue
		}
		if !well(hosts) {
			return false
		}
		up++
	}
	return up >= o.sizes[cohort(owner)]
}

// cohort is what a job is placed together with: its group, or itself alone.
func cohort(addr schema.Address) schema.Address {
	if group := addr.GroupAddress(); !group.IsZero() && addr.Kind != schema.KindReservation {
		return group
	}
	return addr
}

// touched sees changes of a group that is not the stack's: the cloud may preempt it,
// the stack may not delete it.
func (o *oracle) touched(g *cloud.Group) {
	if g.State == cloud.StateDeleting || g.State == cloud.StateStopping {
		o.violated(RuleForeign, "%s %s in %s is %s, and belongs to others", g.Kind, g.Name, g.Zone, g.State)
	}
}

// power sees machines go on and off.
func (o *oracle) power(h *host, on bool) {
	if on && h.mine {
		for _, other := range o.fleet.slices[h.spec.Name] {
			if other != h && other.on && other.machine.Worker == h.machine.Worker {
				o.violated(RuleOneNode, "slice %s has machine %s in %s beside %s in %s",
					h.spec.Name, h.machine.ID, h.machine.Zone, other.machine.ID, other.machine.Zone)
			}
		}
	}
}

// starting sees a host begin a task.
func (o *oracle) starting(h *host, run *state.Run) {
	if g := o.running[run.Job]; g != nil && (g.job != run.JobID || g.attempt != run.Attempt) {
		o.violated(RuleOneRun, "attempt %d of %s starts on %s while attempt %d runs", run.Attempt, run.Job, h.spec.Name, g.attempt)
	}
	for _, other := range o.fleet.slices[h.spec.Name] {
		if g := other.gang; g != nil && (g.job != run.JobID || g.attempt != run.Attempt) {
			o.violated(RuleOneGang, "attempt %d of %s starts on %s while attempt %d of %s is there",
				run.Attempt, run.Job, h.spec.Name, g.attempt, g.addr)
		}
	}
}

// created sees what a creation said. The cloud's own limit is above the
// provider's, so that it never is what rejects one; only a controller that has
// just started does not know what another asked for right before.
func (o *oracle) created(spec *schema.SliceSpec, err error) {
	kind := providers.KindOf(err)
	if err == nil || kind != schema.ErrorRate || !strings.Contains(err.Error(), "requests per minute") {
		return
	}
	if o.fleet.clock.Now().Sub(o.led) > time.Minute {
		o.violated(RuleRate, "slice %s: %v", spec.Name, err)
	}
}

// stepped looks at what fray has recorded after a step. Programs do not fail in a
// rehearsal, so that every failure that was counted was none.
func (o *oracle) stepped(before, doc *state.Document) {
	for addr, j := range doc.Jobs {
		if before.Jobs[addr] == j {
			continue
		}
		if j.Failures > 0 {
			o.violated(RuleBudget, "%s has spent %d of its failure budget, last: %s", addr, j.Failures, j.Reason)
		}
		if j.Status == schema.JobPending && j.Reason == "" {
			o.violated(RuleReason, "%s is pending without a reason", addr)
		}
	}
}
