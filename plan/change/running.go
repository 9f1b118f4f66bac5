package change

import (
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Running is what runs, by a state, of what a plan restarts, replaces or deletes, in the
// order of its changes. Where jobs keep checkpoints is left to the caller.
func Running(doc *state.Document, p *plan.Plan, now time.Time) []plan.Running {
	var pools map[schema.Address]pool
	var running []plan.Running
	for i := range p.Changes {
		c := &p.Changes[i]
		if !ends(c.Verb) {
			continue
		}
		r := plan.Running{Addr: c.Addr, Verb: c.Verb}
		if c.Addr.Kind == schema.KindReservation {
			if pools == nil {
				pools = poolsOf(doc)
			}
			up := pools[c.Addr]
			r.Since, r.Slices = up.since, up.slices
		} else if j := doc.Jobs[c.Addr]; j != nil && j.Running() {
			last := j.Last()
			r.Since, r.Attempt, r.Slices = last.StartedAt, last.Number, len(last.Slices)
		}
		if r.Since.IsZero() {
			continue
		}
		r.Since = r.Since.UTC()
		r.Seconds = max(0, int64(now.Sub(r.Since)/time.Second))
		running = append(running, r)
	}
	return running
}

// ends reports whether a verb ends what runs at an address.
func ends(v plan.Verb) bool {
	switch v {
	case plan.VerbRestart, plan.VerbReplace, plan.VerbDelete:
		return true
	case plan.VerbNone, plan.VerbCreate, plan.VerbUpdate:
	}
	return false
}

// pool is how many slices of a reservation are up, and since when the first of them has been.
type pool struct {
	slices int
	since  time.Time
}

func poolsOf(doc *state.Document) map[schema.Address]pool {
	pools := map[schema.Address]pool{}
	for _, s := range doc.Slices {
		if s.Spec.Owner.Kind != schema.KindReservation || s.UpAt.IsZero() {
			continue
		}
		p := pools[s.Spec.Owner]
		p.slices++
		if p.since.IsZero() || s.UpAt.Before(p.since) {
			p.since = s.UpAt
		}
		pools[s.Spec.Owner] = p
	}
	return pools
}
