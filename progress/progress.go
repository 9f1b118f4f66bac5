package progress

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// waitShown is how long a reason must last before it is worth a line.
const waitShown = 1500 * time.Millisecond

// Progress prints what apply does while it does it: one line for each event that
// happened, and on a terminal a last line that updates.
type Progress struct {
	terminal *terminal.Terminal
	live     bool // on a terminal: keep a line that updates
	lineUp   bool
	started  map[schema.Address]time.Time
	slices   map[string]plan.ActionVerb
	waits    map[schema.Address]*waiting
	failing  map[string]string // last error told, by slice
	now      func() time.Time
	Drifts   map[plan.Drift]bool       // told; nil: none are, nor pauses
	Tells    func(schema.Address) bool // what of it; nil: all
	paused   *state.Pause              // as told

	began, reminded time.Time // of remind
}

type waiting struct {
	reason string
	since  time.Time
	told   bool
}

// New returns the progress of a change on a terminal.
func New(a *terminal.Terminal) *Progress {
	return &Progress{
		terminal: a, live: terminal.IsTerminal(a.Stderr) && !a.PlainProgress,
		started: map[schema.Address]time.Time{},
		slices:  map[string]plan.ActionVerb{},
		waits:   map[schema.Address]*waiting{},
		failing: map[string]string{},
		now:     time.Now,
	}
}

// Line prints a line above the one that is redrawn.
func (p *Progress) Line(format string, args ...any) {
	p.lineUp = p.lineUp || p.live // another command on this terminal may have one
	p.clear()
	fmt.Fprintf(p.terminal.Stderr, format+"\n", args...)
}

func (p *Progress) clear() {
	if p.lineUp {
		fmt.Fprint(p.terminal.Stderr, "\r\x1b[K")
		p.lineUp = false
	}
}

// pause tells that a watch was paused, or may go on.
func (p *Progress) pause(is *state.Pause) {
	was := p.paused
	p.paused = is
	switch {
	case p.Drifts == nil || (was == nil) == (is == nil):
	case is == nil:
		p.Line("Resumed.")
	default:
		p.Line("Paused: %s.", pause.Text(is))
	}
}

// Close clears the line that is redrawn.
func (p *Progress) Close() { p.clear() }

// drift prints what changed without an action, each change once as long as it lasts.
func (p *Progress) drift(pl *plan.Plan) {
	if p.Drifts == nil {
		return
	}
	lasting := map[plan.Drift]bool{}
	for _, d := range pl.Drift {
		lasting[d] = true
		if !p.Drifts[d] {
			p.Line("drift: %s; %s", d.Found, d.Then)
		}
	}
	p.Drifts = lasting
}

// conditions reports which providers cannot be seen, or can again, and what of them
// is skipped or missing.
func (p *Progress) conditions(pl *plan.Plan, before *state.Document) {
	if p.Drifts == nil {
		return
	}
	for _, text := range planchange.ConditionEvents(before.Conditions, pl.Next.Conditions) {
		p.Line("%s", text)
	}
}

// Step tells what changed between two steps.
func (p *Progress) Step(pl *plan.Plan, before *state.Document) {
	p.pause(pl.Next.Paused)
	p.conditions(pl, before)
	p.drift(pl)
	for _, a := range pl.Actions {
		if p.mute(a.Addr) {
			continue
		}
		if s := pl.Next.Slices[a.Slice.Name]; a.Verb == plan.RepairSlice && (s == nil || s.UpAt.IsZero()) {
			continue // it is still being created
		}
		p.action(a)
	}
	var changed, gone []schema.Address // few of many
	for addr, is := range pl.Next.Jobs {
		if before.Jobs[addr] != is && !p.mute(addr) {
			changed = append(changed, addr)
		}
	}
	for addr := range before.Jobs {
		if pl.Next.Jobs[addr] == nil && !p.mute(addr) {
			gone = append(gone, addr)
		}
	}
	slices.SortFunc(changed, schema.Address.Compare)
	slices.SortFunc(gone, schema.Address.Compare)
	for _, addr := range changed {
		p.job(addr, before.Jobs[addr], pl.Next.Jobs[addr])
	}
	for _, addr := range gone {
		p.Line("%s: destroyed%s", addr, p.after(addr))
		delete(p.started, addr)
	}
	waits := slices.DeleteFunc(slices.Clone(pl.Pending), func(w plan.Pending) bool { return p.mute(w.Addr) })
	p.pending(waits)
	p.status(waits)
}

// mute reports whether nothing is told of an address.
func (p *Progress) mute(addr schema.Address) bool { return p.Tells != nil && !p.Tells(addr) }

func (p *Progress) action(a plan.Action) {
	if p.slices[a.Slice.Name] == a.Verb {
		return
	}
	p.slices[a.Slice.Name] = a.Verb
	p.begin(a.Addr)
	switch a.Verb {
	case plan.CreateSlice:
		what := cmp.Or(a.Slice.TPU, a.Slice.GPU.String(), a.Slice.MachineType)
		if what == "" {
			what = fmt.Sprintf("%g CPU", a.Slice.CPU)
		}
		if a.Slice.Zone != "" {
			what += " in " + a.Slice.Zone
		}
		p.Line("%s: creating slice %s (%s)", a.Addr, a.Slice.Name, what)
	case plan.UpdateSlice:
		p.Line("%s: changing slice %s in place", a.Addr, a.Slice.Name)
	case plan.DeleteSlice:
		p.Line("%s: deleting slice %s", a.Addr, a.Slice.Name)
	case plan.RepairSlice:
		p.Line("%s: starting what is missing of slice %s", a.Addr, a.Slice.Name)
	case plan.Assign, plan.ForgetSlice:
	}
}

func (p *Progress) begin(addr schema.Address) {
	if _, ok := p.started[addr]; !ok {
		p.started[addr] = p.now()
	}
}

// after is " after 1.2s" since the last beginning of an address.
func (p *Progress) after(addr schema.Address) string {
	t, ok := p.started[addr]
	if !ok {
		return ""
	}
	return fmt.Sprintf(" after %s", p.now().Sub(t).Round(100*time.Millisecond))
}

// ran is " after 47s", the time that the last attempt of a job took: it may have begun long
// before this process, which has seen only its end.
func (p *Progress) ran(addr schema.Address, last *state.Attempt) string {
	if last == nil || last.StartedAt.IsZero() {
		return p.after(addr)
	}
	ended := cmp.Or(last.EndedAt, p.now())
	return fmt.Sprintf(" after %s", max(0, ended.Sub(last.StartedAt)).Round(100*time.Millisecond))
}

func (p *Progress) job(addr schema.Address, was, is *state.Job) {
	p.begin(addr)
	var wasAttempt int
	var wasReady bool
	var wasStatus schema.JobStatus
	if was != nil {
		wasAttempt, wasReady, wasStatus = was.Attempt, was.Ready, was.Status
	}
	ended := newlyEnded(was, is)
	for _, a := range ended {
		p.Line("%s: attempt %d %s%s", addr, a.Number, Outcome(a.Outcome), Because(a.Reason))
	}
	if len(ended) > 0 || wasStatus.Ended() && (is.Attempt != wasAttempt || !is.Status.Ended()) {
		p.started[addr] = p.now() // what follows is a new beginning
	}
	last := is.Last()
	if is.Attempt != wasAttempt && is.Attempt > 1 {
		p.Line("%s: attempt %d starts", addr, is.Attempt)
	}
	switch {
	case is.Status == wasStatus && is.Ready == wasReady:
	case is.Status == schema.JobRunning && is.Ready && !wasReady:
		word := "running"
		if is.Spec.HealthCheck != nil {
			word = "running and healthy"
		}
		p.Line("%s: %s%s", addr, word, p.after(addr))
	case is.Status == schema.JobSucceeded && wasStatus != is.Status:
		p.Line("%s: succeeded%s", addr, p.ran(addr, last))
	case is.Status == schema.JobFailed && wasStatus != is.Status:
		p.Line("%s: failed%s%s", addr, p.ran(addr, last), Because(is.Reason))
		p.tail(last)
	case is.Status == schema.JobScheduled && wasStatus != is.Status:
		p.scheduled(addr, is)
	case is.Status == schema.JobStopped && wasStatus != is.Status:
		p.Line("%s: stopped", addr)
	}
}

// scheduled reports that a job waits for its next run.
func (p *Progress) scheduled(addr schema.Address, j *state.Job) {
	runs := j.Scheduled
	if runs == nil {
		return
	}
	if runs.Ended > 0 {
		p.Line("%s: run %d %s%s", addr, runs.Ended, runs.Outcome, Because(runs.Reason))
		if runs.Outcome == schema.JobFailed {
			p.tail(j.Last())
		}
	}
	if runs.Due.IsZero() {
		p.Line("%s: suspended; no run is due", addr)
		return
	}
	p.Line("%s: scheduled; the next run is due at %s", addr, runs.Due.Local().Format("2006-01-02 15:04 MST"))
}

// newlyEnded are the attempts that ended in between, but for one with which the
// job did: a retry may have begun at once.
func newlyEnded(was, is *state.Job) []*state.Attempt {
	var ended []*state.Attempt
	for i := range is.Attempts {
		a := &is.Attempts[i]
		newest := i == len(is.Attempts)-1
		switch {
		case a.Outcome == "", newest && is.Status.Ended():
		case was == nil:
			if newest {
				ended = append(ended, a)
			}
		case a.Number > was.Attempt, a.Number == was.Attempt && was.Last() != nil && was.Last().Outcome == "":
			ended = append(ended, a)
		}
	}
	return ended
}

// tail shows the last lines of the task that failed.
func (p *Progress) tail(a *state.Attempt) {
	for _, l := range Tail(a) {
		p.Line("    | %s", l)
	}
}

// Tail are the last lines of the task with which an attempt failed; nil: it has none.
func Tail(a *state.Attempt) []string {
	if a == nil {
		return nil
	}
	for i := range a.Tasks {
		if t := &a.Tasks[i]; t.State == schema.TaskFailed && len(t.Tail) > 0 {
			return t.Tail
		}
	}
	return nil
}

// Failed tells an action's error, once while it stays the same.
func (p *Progress) Failed(a plan.Action, err error) {
	if p.failing[a.Slice.Name] == err.Error() {
		return
	}
	p.failing[a.Slice.Name] = err.Error()
	p.Line("%s: %v", a.Addr, err)
}

// pending tells a reason that lasts.
func (p *Progress) pending(waits []plan.Pending) {
	seen := map[schema.Address]bool{}
	for _, w := range waits {
		if seen[w.Addr] {
			continue
		}
		seen[w.Addr] = true
		reason := Steady(w.Reasons[0])
		cur := p.waits[w.Addr]
		if cur == nil || cur.reason != reason {
			cur = &waiting{reason: reason, since: p.now()}
			p.waits[w.Addr] = cur
		}
		if !cur.told && p.now().Sub(cur.since) >= waitShown {
			cur.told = true
			p.Line("%s: waiting: %s", w.Addr, w.Reasons[0])
		}
	}
	for addr := range p.waits {
		if !seen[addr] {
			delete(p.waits, addr)
		}
	}
}

// status keeps the last line of a terminal.
func (p *Progress) status(waits []plan.Pending) {
	if !p.live {
		return
	}
	p.clear()
	if len(waits) == 0 {
		return
	}
	w := waits[0]
	text := fmt.Sprintf("  %d to go: %s: %s", len(waits), w.Addr, w.Reasons[0])
	if width := p.terminal.Width(p.terminal.Stderr) - 1; len(text) > width {
		text = text[:width-1] + "…"
	}
	fmt.Fprint(p.terminal.Stderr, text)
	p.lineUp = true
}
