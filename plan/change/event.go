package change

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// More returns "and n more", or nothing for none.
func More(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// Events is what happened between a state and the one that a plan led to, in
// the order of addresses.
func Events(before *state.Document, p *plan.Plan, now time.Time) []state.Event {
	var since state.Edits
	since.Begin(before)
	return EventsSince(&since, p, now)
}

// EventsSince is Events since the state that edits begin with.
func EventsSince(since *state.Edits, p *plan.Plan, now time.Time) []state.Event {
	before := since.From()
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
		t.tellAt(state.EventWarn, state.Event{Kind: state.EventDrift, Addr: d.Addr, Slice: d.Slice, Text: d.Found + "; " + d.Then})
	}
	if before.Revision != p.Next.Revision {
		t.tell(state.EventConfig, schema.Address{}, fmt.Sprintf("revision %d was accepted", p.Next.Revision))
		for _, o := range p.Next.Overrides {
			if o.Revision > before.Revision {
				t.tellAt(state.EventWarn, state.Event{Kind: state.EventConfig, Text: fmt.Sprintf("policy %s was overridden by %s: %s", o.Policy, o.By, o.Reason)})
			}
		}
		t.merged(before.Followed, p.Next.Followed)
	}
	for _, text := range ConditionEvents(before.Conditions, p.Next.Conditions) {
		t.tell(state.EventProvider, schema.Address{}, text)
	}
	t.budgets(before, p.Next)
	since.Differences(before, p.Next, func(addr schema.Address, old, j *state.Job) {
		if j == nil {
			t.tell(state.EventJob, addr, "is gone")
			return
		}
		t.job(addr, old, j)
	}, func(name string, old, s *state.Slice) {
		if s == nil {
			t.tellAt(state.EventInfo, state.Event{Kind: state.EventSlice, Addr: old.Spec.Owner, Slice: name, Text: "is gone", Of: ofSlice(old, state.ChangeGone)})
			return
		}
		t.slice(old, s)
	})
	slices.SortStableFunc(t.events, func(a, b state.Event) int {
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
	events   []state.Event
}

func (t *teller) tell(kind state.EventKind, addr schema.Address, text string) {
	t.tellAt(state.EventInfo, state.Event{Kind: kind, Addr: addr, Text: text})
}

func (t *teller) tellAt(level state.EventLevel, e state.Event) {
	e.At, e.Level = t.now, level
	t.events = append(t.events, e)
}

// merged tells with which commits a configuration came.
func (t *teller) merged(was, is *state.Followed) {
	if is == nil || was != nil && was.Commit == is.Commit {
		return
	}
	for i := range slices.Backward(is.Commits) {
		t.tell(state.EventConfig, schema.Address{}, "merged "+is.Commits[i].String())
	}
	if is.More > 0 {
		t.tell(state.EventConfig, schema.Address{}, fmt.Sprintf("merged %d commits before these", is.More))
	}
}

// levelOfOutcome says how good or bad it is that an attempt ended so.
func levelOfOutcome(s schema.TaskState) state.EventLevel {
	switch s {
	case schema.TaskSucceeded:
		return state.EventGood
	case schema.TaskPreempted, schema.TaskWorkerFailed, schema.TaskExitUnknown:
		return state.EventWarn
	case schema.TaskFailed, schema.TaskUnschedulable:
		return state.EventError
	case schema.TaskKilled, schema.TaskPending, schema.TaskAssigned, schema.TaskBuilding, schema.TaskRunning:
	}
	return state.EventInfo
}

// job tells what became of a job; old is nil for a new one.
func (t *teller) job(addr schema.Address, old, j *state.Job) {
	if old == nil || old.ID != j.ID {
		old = &state.Job{}
		if j.Launch != nil {
			t.tell(state.EventLaunched, addr, launchedBy(j.Launch))
		}
	}
	for i := range j.Attempts {
		a := &j.Attempts[i]
		was := attemptOf(old, a.Number)
		if was == nil {
			t.tell(state.EventStarted, addr, began(a))
			was = &state.Attempt{}
		}
		if was.ReadyAt.IsZero() && !a.ReadyAt.IsZero() {
			t.tellAt(state.EventGood, state.Event{Kind: state.EventReady, Addr: addr, Text: fmt.Sprintf("attempt %d is up", a.Number)})
		}
		t.hooks(addr, was, a)
		if was.Outcome == "" && a.Outcome != "" {
			text := WithCause(fmt.Sprintf("attempt %d %s", a.Number, plan.OutcomeWords(a.Outcome)), a.Reason)
			t.tellAt(levelOfOutcome(a.Outcome), state.Event{Kind: state.EventEnded, Addr: addr, Text: text})
		}
	}
	t.scheduled(addr, old, j)
	if old.Status != j.Status && j.Status.Ended() && j.Status != schema.JobScheduled {
		t.tellAt(levelOfOutcome(j.Status.Outcome()), state.Event{Kind: state.EventJob, Addr: addr, Text: WithCause(string(j.Status), j.Reason)})
	}
	if old.Reason != j.Reason && j.Reason != "" && j.Status == schema.JobPending && !t.underway[addr] {
		t.tell(state.EventPending, addr, "waits: "+j.Reason)
	}
}

// hooks tells of hooks before the stop of an attempt that did not succeed.
func (t *teller) hooks(addr schema.Address, was, a *state.Attempt) {
	for i := range a.Tasks {
		hook := a.Tasks[i].Hook
		if hook == nil || hook.Outcome == schema.HookSucceeded || len(was.Tasks) > i && was.Tasks[i].Hook != nil {
			continue
		}
		text := WithCause(fmt.Sprintf("before_stop of attempt %d, task %d (%s): %s", a.Number, i, hook.Stop, strings.ReplaceAll(string(hook.Outcome), "_", " ")), hook.Reason)
		t.tellAt(state.EventWarn, state.Event{Kind: state.EventJob, Addr: addr, Text: text})
	}
}

// scheduled tells what became of the runs of a job with a schedule.
func (t *teller) scheduled(addr schema.Address, old, j *state.Job) {
	if j.Scheduled == nil {
		return
	}
	was, is := state.ScheduledRuns{}, j.Scheduled
	if old.Scheduled != nil {
		was = *old.Scheduled
	}
	if is.Ended > was.Ended {
		text := WithCause(fmt.Sprintf("run %d %s", is.Ended, is.Outcome), is.Reason)
		t.tellAt(levelOfOutcome(is.Outcome.Outcome()), state.Event{Kind: state.EventJob, Addr: addr, Text: text})
	}
	if is.Skipped != nil && is.Skipped != was.Skipped {
		t.tellAt(state.EventWarn, state.Event{Kind: state.EventJob, Addr: addr, Text: SkippedRunsText(is.Skipped)})
	}
	if is.Run > was.Run {
		t.tell(state.EventJob, addr, fmt.Sprintf("run %d, due at %s, begins", is.Run, is.DueAt.UTC().Format(time.RFC3339)))
	}
}

// SkippedRunsText is which runs did not begin, and why.
func SkippedRunsText(s *state.SkippedRuns) string {
	runs := "the run that was due at " + s.First.UTC().Format(time.RFC3339) + " is skipped"
	if s.Runs != 1 {
		runs = fmt.Sprintf("%d runs", s.Runs)
		if s.Runs == 0 {
			runs = "very many runs"
		}
		runs += fmt.Sprintf(" that were due from %s to %s are skipped", s.First.UTC().Format(time.RFC3339), s.Last.UTC().Format(time.RFC3339))
	}
	return runs + ": " + skipWords(s.Why)
}

func skipWords(why schema.RunSkip) string {
	switch why {
	case schema.SkippedOverlap:
		return "another run had not ended"
	case schema.SkippedWaiting:
		return "another run waited already"
	case schema.SkippedMissed:
		return "no controller served"
	case schema.SkippedDeadline:
	}
	return "the starting deadline had passed"
}

// began says that an attempt began, and why.
func began(a *state.Attempt) string {
	text := fmt.Sprintf("attempt %d began: %s", a.Number, a.Why)
	if a.Resumed {
		text += "; resumed after a restart of the controller"
	}
	return text
}

func attemptOf(j *state.Job, number int) *state.Attempt {
	for i := range j.Attempts {
		if j.Attempts[i].Number == number {
			return &j.Attempts[i]
		}
	}
	return nil
}

// WithCause returns "what: why", or what alone where there is no cause.
func WithCause(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

func launchedBy(l *state.Launch) string {
	if l.Parent == "" {
		return WithCause("was launched", l.By)
	}
	return fmt.Sprintf("was launched by %s, attempt %d", l.Parent, l.ParentAttempt)
}

// slice tells what became of a slice; old is nil for a new one.
func (t *teller) slice(old, s *state.Slice) {
	if old == nil {
		old = &state.Slice{}
	}
	say := func(level state.EventLevel, change state.SliceChange, text string) {
		t.tellAt(level, state.Event{Kind: state.EventSlice, Addr: s.Spec.Owner, Slice: s.Spec.Name, Text: text, Of: ofSlice(s, change)})
	}
	if old.PendingSince.IsZero() && !s.PendingSince.IsZero() && !s.Listed {
		say(state.EventInfo, state.ChangeAsked, WithCause("is asked for", s.Spec.Zone))
	}
	if old.UpAt.IsZero() && !s.UpAt.IsZero() {
		say(state.EventGood, state.ChangeUp, "is up")
	}
	if len(s.Edited) == 0 && len(old.Edited) > 0 {
		t.tellAt(state.EventGood, state.Event{Kind: state.EventSlice, Addr: s.Spec.Owner, Slice: s.Spec.Name, Text: "has its labels and tags again"})
	}
	if s.Failed != "" && (old.Failed != s.Failed || old.Error != s.Error) {
		say(state.EventWarn, state.ChangeFailed, s.Error)
	}
	if !s.Terminating.IsZero() && old.Terminating.Cause != s.Terminating.Cause {
		say(state.EventWarn, state.ChangeGoing, "goes: "+s.Terminating.Text)
	}
}

// ofSlice is a change of a slice for programs, nil of one that no cloud made.
func ofSlice(s *state.Slice, change state.SliceChange) *state.SliceEvent {
	if s.Spec.Zone == "" {
		return nil
	}
	e := &state.SliceEvent{
		Change: change, Zone: s.Spec.Zone, Type: s.Spec.Kind(), Index: s.Spec.Index, Preemptible: s.Spec.Preemptible,
	}
	switch change {
	case state.ChangeFailed:
		e.Failed = s.Failed
	case state.ChangeGoing:
		e.Cause = s.Terminating.Cause
	case state.ChangeAsked, state.ChangeUp, state.ChangeGone:
	}
	return e
}
