package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Events is what happened between a state and the one that a plan led to, in
// the order of addresses.
func Events(before *state.Document, p *Plan, now time.Time) []store.Event {
	if before == p.Next && len(p.Drift) == 0 {
		return nil
	}
	t := &teller{now: now, underway: map[schema.Address]bool{}}
	for i := range p.Pending {
		if p.Pending[i].Underway {
			t.underway[p.Pending[i].Addr] = true
		}
	}
	for _, d := range p.Drift {
		t.tell(store.EventDrift, d.Addr, d.Slice, d.Found+"; "+d.Then)
	}
	if before.Revision != p.Next.Revision {
		t.tell(store.EventConfig, schema.Address{}, "", fmt.Sprintf("revision %d was accepted", p.Next.Revision))
	}
	for _, text := range ConditionEvents(before.Conditions, p.Next.Conditions) {
		t.tell(store.EventProvider, schema.Address{}, "", text)
	}
	for addr, j := range p.Next.Jobs {
		if old := before.Jobs[addr]; old != j {
			t.job(addr, old, j)
		}
	}
	for addr := range before.Jobs {
		if p.Next.Jobs[addr] == nil {
			t.tell(store.EventJob, addr, "", "is gone")
		}
	}
	for name, s := range p.Next.Slices {
		if old := before.Slices[name]; old != s {
			t.slice(old, s)
		}
	}
	for name, s := range before.Slices {
		if p.Next.Slices[name] == nil {
			t.tell(store.EventSlice, s.Spec.Owner, name, "is gone")
		}
	}
	slices.SortStableFunc(t.events, func(a, b store.Event) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Slice, b.Slice))
	})
	return t.events
}

// teller collects events.
type teller struct {
	// underway are those that wait for nothing but what is being done, which
	// tells of itself.
	underway map[schema.Address]bool
	now      time.Time
	events   []store.Event
}

func (t *teller) tell(kind store.EventKind, addr schema.Address, slice, text string) {
	t.events = append(t.events, store.Event{At: t.now, Kind: kind, Addr: addr, Slice: slice, Text: text})
}

// job tells what became of a job; old is nil for a new one.
func (t *teller) job(addr schema.Address, old, j *state.Job) {
	if old == nil || old.ID != j.ID {
		old = &state.Job{}
		if j.Launch != nil {
			t.tell(store.EventLaunched, addr, "", launchedBy(j.Launch))
		}
	}
	for i := range j.Attempts {
		a := &j.Attempts[i]
		was := attemptOf(old, a.Number)
		if was == nil {
			t.tell(store.EventStarted, addr, "", fmt.Sprintf("attempt %d began: %s", a.Number, a.Why))
			was = &state.Attempt{}
		}
		if was.ReadyAt.IsZero() && !a.ReadyAt.IsZero() {
			t.tell(store.EventReady, addr, "", fmt.Sprintf("attempt %d is up", a.Number))
		}
		if was.Outcome == "" && a.Outcome != "" {
			t.tell(store.EventEnded, addr, "", described(fmt.Sprintf("attempt %d %s", a.Number, outcomeWords(a.Outcome)), a.Reason))
		}
	}
	if old.Status != j.Status && j.Status.Ended() {
		t.tell(store.EventJob, addr, "", described(string(j.Status), j.Reason))
	}
	if old.Reason != j.Reason && j.Reason != "" && j.Status == schema.JobPending && !t.underway[addr] {
		t.tell(store.EventPending, addr, "", "waits: "+j.Reason)
	}
}

func attemptOf(j *state.Job, number int) *state.Attempt {
	for i := range j.Attempts {
		if j.Attempts[i].Number == number {
			return &j.Attempts[i]
		}
	}
	return nil
}

func described(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

func launchedBy(l *state.Launch) string {
	if l.Parent == "" {
		return described("was launched", l.By)
	}
	return fmt.Sprintf("was launched by %s, attempt %d", l.Parent, l.ParentAttempt)
}

// slice tells what became of a slice; old is nil for a new one.
func (t *teller) slice(old, s *state.Slice) {
	if old == nil {
		old = &state.Slice{}
	}
	say := func(text string) { t.tell(store.EventSlice, s.Spec.Owner, s.Spec.Name, text) }
	if old.AskedAt.IsZero() && !s.AskedAt.IsZero() && !s.Seen {
		say(described("is asked for", s.Spec.Zone))
	}
	if old.BornAt.IsZero() && !s.BornAt.IsZero() {
		say("is up")
	}
	if old.Error != s.Error && s.Error != "" {
		say(s.Error)
	}
	if old.Doomed == "" && s.Doomed != "" {
		say("goes: " + s.Doomed)
	}
}
