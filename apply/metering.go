package apply

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// meter brings the metering of the state up to date before it is saved: each state that is
// saved knows until when its slices are counted.
func (s *Stepper) meter() {
	if s.observed == nil || len(s.doc.Slices) == 0 && s.doc.Metering == nil {
		return // what is recorded may be gone by now
	}
	in := accounting.Input{Doc: s.doc, Since: &s.sinceMetering, Known: &s.metered, Now: s.cfg.Now(), LastHeard: s.observer.lastReport}
	if unlisted, known := s.planner.Unlisted(s.doc); known {
		in.Unlisted, in.Listed = unlisted, func(slice string) bool { return !unlisted[slice] }
	} else {
		listed := s.observed.Listed()
		in.Listed = func(slice string) bool { return listed[slice] }
	}
	s.doc = s.planner.Metered(s.doc, accounting.Meter(in))
	s.sinceMetering.Begin(s.doc)
}

// restoreMetering returns doc with what the ledger says of this month, where doc has no metering
// of its own: a state that was lost and made again goes on with its budgets.
func restoreMetering(ctx context.Context, s store.Store, doc *state.Document, now time.Time) (*state.Document, error) {
	if doc.Metering != nil {
		return doc, nil
	}
	intervals, err := ReadUsage(ctx, s, nil, accounting.MonthOf(now), now)
	if err != nil {
		return nil, err
	}
	restored := accounting.Restored(intervals, now)
	if restored == nil {
		return doc, nil
	}
	next := *doc
	next.Metering = restored
	return &next, nil
}

// meterIfDue does so where nothing else is to be saved.
func (s *Stepper) meterIfDue() {
	if accounting.IsDue(s.doc, s.cfg.Now()) {
		s.meter()
	}
}

// lastReport is when a host of a slice last reported, by the store's clock, zero if none has.
func (o *Observer) lastReport(slice string) time.Time {
	var last time.Time
	prefix := store.HostsOf(slice)
	i, _ := slices.BinarySearchFunc(o.listed, prefix, func(a store.Attrs, key string) int { return strings.Compare(a.Key, key) })
	for ; i < len(o.listed) && strings.HasPrefix(o.listed[i].Key, prefix); i++ {
		if at := o.listed[i].Updated; at.After(last) {
			last = at
		}
	}
	return last
}
