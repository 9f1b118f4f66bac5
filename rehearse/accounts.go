package rehearse

import (
	"cmp"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// accounts keep the accounts of all jobs and what capacity was used. They are given
// by the fleet, as a [fleetWatch], and look at the state after every step.
type accounts struct {
	r        *rehearsal
	accounts map[schema.Address]*account
	used     map[usageKey]*usage
	onSince  map[*host]time.Time
	released bool                       // nothing is wanted any more
	made     int                        // slices that got machines
	weights  map[schema.Address]float64 // chips of a job, or its hosts if it has none
}

// usageKey is what capacity is summed up by.
type usageKey struct {
	zone        string
	kind        string // TPU, GPUs or machine type
	preemptible bool
}

type usage struct {
	chipHours float64
	hostHours float64
	low, high float64 // US dollars
	unpriced  bool
}

func newBooks(r *rehearsal, desired *schema.Desired, workloads []Workload) *accounts {
	b := &accounts{
		r: r, accounts: map[schema.Address]*account{}, used: map[usageKey]*usage{}, onSince: map[*host]time.Time{},
		weights: map[schema.Address]float64{},
	}
	for i := range desired.Jobs {
		addr, want := desired.Jobs[i].Addr, &desired.Jobs[i].Resources
		b.weights[addr] = float64(want.Slices)
		if n := chips(want); n > 0 {
			b.weights[addr] *= float64(n)
		}
		b.accounts[addr] = newAccount(addr, workloadOf(workloads, addr), r.clock.Now())
	}
	return b
}

var _ fleetWatch = (*accounts)(nil)

func (b *accounts) powered(h *host, on bool, now time.Time) {
	b.r.oracle.power(h, on)
	if !h.mine {
		return
	}
	if on {
		b.onSince[h] = now
		if h.boots == 1 && h.machine.Worker == 0 {
			b.made++
		}
		b.placed(h)
		return
	}
	b.charge(h, now)
}

// placed sees a slice get its machines: since its creation was accepted it was
// not capacity that it waited for.
func (b *accounts) placed(h *host) {
	accepted := b.r.gate.placed(&h.spec)
	a := b.accounts[h.spec.Owner]
	if a == nil || a.gang != nil || accepted.IsZero() {
		return
	}
	if accepted.After(a.since) {
		a.turn(accepted, CauseBooting, "")
	}
}

// wanted reports whether a job, or what else owns slices, is declared and not done.
func (b *accounts) wanted(addr schema.Address) bool {
	if b.released {
		return false
	}
	a := b.accounts[addr]
	return a == nil && addr.Kind == schema.KindReservation || a != nil && !a.ended && !a.complete()
}

// charge accounts for the time since a machine was switched on.
func (b *accounts) charge(h *host, now time.Time) {
	since, on := b.onSince[h]
	if !on {
		return
	}
	delete(b.onSince, h)
	key := usageKey{zone: h.machine.Zone, kind: cmp.Or(h.spec.TPU, h.spec.GPU.String(), h.machine.MachineType), preemptible: h.spec.Preemptible}
	u := b.used[key]
	if u == nil {
		u = &usage{}
		b.used[key] = u
	}
	hours := now.Sub(since).Hours()
	u.hostHours += hours
	u.chipHours += hours * float64(accelerators.Chips(&h.spec)) / float64(h.spec.Hosts)
	price := accelerators.EstimateOf(&h.spec, b.r.offers).PerHour.Times(hours / float64(h.spec.Hosts))
	u.low, u.high = u.low+price.Low, u.high+price.High
	u.unpriced = u.unpriced || !price.Known()
}

func (b *accounts) starting(h *host, run *state.Run) { b.r.oracle.starting(h, run) }

func (b *accounts) runs(g *gang, now time.Time) {
	b.r.oracle.running[g.addr] = g
	a := b.accounts[g.addr]
	if a == nil {
		return
	}
	a.begin(now, g)
	if left, ends := a.left(); ends {
		key := g.gangKey
		b.r.clock.AfterFunc(now.Add(left), func() { b.r.done(g.addr, key) })
	}
}

func (b *accounts) breaks(g *gang, now time.Time) {
	if b.r.oracle.running[g.addr] == g {
		delete(b.r.oracle.running, g.addr)
	}
	a := b.accounts[g.addr]
	if a == nil || a.gang != g {
		return
	}
	a.stop(now, a.finished(now))
}

// finished reports whether the work of the attempt that runs is all done.
func (a *account) finished(now time.Time) bool {
	left, ends := a.left()
	return ends && now.Sub(a.since) >= left
}

// observe takes in what the state records of the jobs that do not run.
func (b *accounts) observe(now time.Time, doc *state.Document) {
	for addr, a := range b.accounts {
		if a.ended || a.gang != nil {
			continue
		}
		j := doc.Jobs[addr]
		if j == nil {
			continue
		}
		a.reason = j.Reason
		if j.Status.Ended() {
			a.end(now)
			a.spentOn = spentBudget(j)
			continue
		}
		if cause, zone := b.why(j); cause != a.cause || zone != a.zone {
			a.turn(now, cause, zone)
		}
	}
}

// spentBudget is the budget of a job that has failed since there is nothing left of it, nil
// for one that ended otherwise.
func spentBudget(j *state.Job) *Spent {
	retries := &j.Spec.Retries
	switch {
	case j.Status != schema.JobFailed:
	case !plan.Within(j.Preemptions, retries.Preemption):
		return &Spent{Budget: BudgetPreemption, Limit: retries.Preemption}
	case !plan.Within(j.Failures, retries.Failure):
		return &Spent{Budget: BudgetFailure, Limit: retries.Failure}
	}
	return nil
}

// why is what a job that does not run waits for: the first of its slices that
// waits for anything but its boot tells.
func (b *accounts) why(j *state.Job) (Cause, string) {
	f := b.r.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range j.Slices {
		hosts := f.slices[name]
		if cause := gone(hosts); cause != "" {
			return cause, ""
		}
		if cause, zone, rejected := b.r.gate.rejection(name); rejected && len(hosts) == 0 {
			return cause, zone
		}
	}
	if len(j.Slices) > 0 && !f.allUp(j.Slices) {
		return CauseBooting, ""
	}
	if cause, zone, rejected := b.r.gate.rejectionOf(j.Spec.Addr); rejected {
		return cause, zone
	}
	return CauseOther, ""
}

// gone is what has become of a slice that was up, "" if nothing has.
func gone(hosts []*host) Cause {
	off, noticed, bad := 0, false, false
	for _, h := range hosts {
		if !h.on {
			off++
		}
		noticed = noticed || h.report.Notice != ""
		bad = bad || h.machine.Bad
	}
	switch {
	case noticed, off > 0 && off == len(hosts):
		return CausePreempted
	case off > 0, bad:
		return CauseLost
	}
	return ""
}

// close ends all accounts.
func (b *accounts) close(now time.Time) {
	for _, a := range b.accounts {
		a.end(now)
	}
	for h := range b.onSince {
		b.charge(h, now)
	}
}
