package history

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ErrNothing reports that no event tells of a slice in a cloud.
var ErrNothing = errors.New("no event tells of a slice in a cloud")

// History is what events tell of a cloud. Times count from its beginning.
type History struct {
	From, To  time.Time
	Losses    []Loss // in order of time
	Stockouts []Stockout
	Zones     []Zone // by name
}

// Lasts is how long it is.
func (h *History) Lasts() time.Duration { return h.To.Sub(h.From) }

// Loss is a slice that was preempted, or lost a host.
type Loss struct {
	At     time.Duration
	Job    schema.Address
	Index  int // of the slice
	Zone   string
	Type   string // generation of TPU, type of GPUs, or machine family
	Host   bool   // a host was lost, and not the whole slice
	Silent bool   // without notice
}

// Stockout is a time without capacity in a zone.
type Stockout struct {
	Zone, Type string
	From, To   time.Duration
}

// Zone is how long slices took in a zone.
type Zone struct {
	Name      string
	Creation  Span // from the request until all hosts report
	Deletion  Span
	ups, ends []time.Duration
}

// Span is most of what was observed: the tenth and the ninetieth percentile; zero: nothing
// was.
type Span struct{ Low, High time.Duration }

// Of takes in events, in order of time.
func Of(events []state.Event) (*History, error) {
	r := &reader{h: &History{}, slices: map[string]*seen{}, short: map[place]*Stockout{}, taken: map[place]time.Time{}, zones: map[string]*Zone{}}
	for i := range events {
		if e := &events[i]; e.Of != nil {
			r.take(e)
		}
	}
	if r.h.From.IsZero() {
		return nil, ErrNothing
	}
	r.finish()
	return r.h, nil
}

// place is where capacity may be short.
type place struct{ zone, kind string }

// seen is what is known of a slice.
type seen struct {
	asked time.Time // zero: it is not known, or a call failed since
	going time.Time
}

type reader struct {
	h      *History
	slices map[string]*seen
	short  map[place]*Stockout // that have begun
	taken  map[place]time.Time // the last preemption since a slice came up
	zones  map[string]*Zone
}

// take takes in one event of a slice.
func (r *reader) take(e *state.Event) {
	if r.h.From.IsZero() {
		r.h.From = e.At
	}
	r.h.To = e.At
	at := place{zone: e.Of.Zone, kind: family(e.Of.Type)}
	s := r.slices[e.Slice]
	if s == nil {
		s = &seen{}
		r.slices[e.Slice] = s
	}
	switch e.Of.Change {
	case state.ChangeAsked:
		*s = seen{asked: e.At}
	case state.ChangeUp:
		r.up(e, s, at)
	case state.ChangeFailed:
		if e.Of.Failed == schema.ErrorCapacity {
			r.refused(s, at, e.At)
		}
		s.asked = time.Time{}
	case state.ChangeGoing:
		s.going = e.At
		r.lost(e, at)
	case state.ChangeGone:
		if !s.going.IsZero() {
			z := r.zone(at.zone)
			z.ends = append(z.ends, e.At.Sub(s.going))
		}
		delete(r.slices, e.Slice)
	}
}

// up ends a time without capacity in the slice's place: there was some when it was asked
// for, or, if it was refused since, by now.
func (r *reader) up(e *state.Event, s *seen, at place) {
	delete(r.taken, at)
	since := e.At
	if !s.asked.IsZero() {
		z := r.zone(at.zone)
		z.ups = append(z.ups, e.At.Sub(s.asked))
		since = s.asked
	}
	if w := r.short[at]; w != nil {
		if end := since.Sub(r.h.From); end > w.From {
			w.To = max(w.To, end)
			r.h.Stockouts = append(r.h.Stockouts, *w)
			delete(r.short, at)
		}
	}
}

// refused begins a time without capacity, or has it go on. When it began is between what
// was there last and the rejection: a zone that takes a slice and then rejects another one
// is taken to be short since it took that, and else since the request.
func (r *reader) refused(s *seen, at place, now time.Time) {
	w := r.short[at]
	if w == nil {
		since := now
		if taken := r.taken[at]; !taken.IsZero() {
			since = taken
		} else if !s.asked.IsZero() {
			since = s.asked
		}
		w = &Stockout{Zone: at.zone, Type: at.kind, From: since.Sub(r.h.From)}
		r.short[at] = w
	}
	w.To = now.Sub(r.h.From) + time.Second
}

// lost takes in that a slice goes, if the cloud took it.
func (r *reader) lost(e *state.Event, at place) {
	l := Loss{At: e.At.Sub(r.h.From), Job: e.Addr, Index: e.Of.Index, Zone: at.zone, Type: at.kind}
	switch e.Of.Cause {
	case state.CauseNotice:
	case state.CausePreempted, state.CauseDead:
		l.Silent = true
	case state.CauseHostLost, state.CauseHostBad:
		l.Host = true
	case state.CauseNone, state.CauseHostGone, state.CauseBoot, state.CauseQueue, state.CauseIdleUnwell, state.CauseUnknown,
		state.CauseJobRemoved, state.CauseUndeclared, state.CauseExpired, state.CauseStopped, state.CauseEnded, state.CauseMoved,
		state.CauseReplaced, state.CauseNotPlaced, state.CauseBudget, state.CauseYielded, state.CauseMakesRoom, state.CauseIdle, state.CausePlacedAgain,
		state.CauseUnneeded, state.CauseUnused, state.CauseReshaped:
		return
	}
	if !l.Host {
		r.taken[at] = e.At
	}
	r.h.Losses = append(r.h.Losses, l)
}

func (r *reader) zone(name string) *Zone {
	z := r.zones[name]
	if z == nil {
		z = &Zone{Name: name}
		r.zones[name] = z
	}
	return z
}

// finish ends what has begun and sums up.
func (r *reader) finish() {
	for _, w := range r.short {
		r.h.Stockouts = append(r.h.Stockouts, *w)
	}
	slices.SortFunc(r.h.Stockouts, func(a, b Stockout) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Type, b.Type))
	})
	for _, z := range r.zones {
		z.Creation, z.Deletion = spanOf(z.ups), spanOf(z.ends)
		r.h.Zones = append(r.h.Zones, *z)
	}
	slices.SortFunc(r.h.Zones, func(a, b Zone) int { return cmp.Compare(a.Name, b.Name) })
}

// spanOf is most of what was observed.
func spanOf(all []time.Duration) Span {
	if len(all) == 0 {
		return Span{}
	}
	slices.Sort(all)
	n := len(all) - 1
	return Span{Low: max(all[n/10], time.Second).Round(time.Second), High: max(all[n*9/10], time.Second).Round(time.Second)}
}

// family is what a scenario calls a type: the generation of a TPU, a type of GPUs, or a machine family.
func family(kind string) string {
	if gpu, ok := accelerators.GPUOfKind(kind); ok {
		return gpu.Type
	}
	if shape, err := accelerators.Parse(kind); err == nil {
		return shape.Generation
	}
	name, _, _ := strings.Cut(kind, "-")
	return name
}
