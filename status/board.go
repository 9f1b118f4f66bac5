package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status/selection"
	"github.com/fray-ml/fray/terminal"
)

// board is a stack as the full-screen view shows it: a few lines about all of
// it, and panes of rows. Cells are made when they are drawn, so that a board of
// ten thousand jobs costs no more than what is visible of it.
type board struct {
	view  *View
	whole *View // view is of it, or of opened groups of it
	head  []headLine
	panes [paneCount]pane
}

type headLine struct {
	mood mood
	text string
}

// paneKind is a closed set.
type paneKind int

// The panes, in the order in which they are shown.
const (
	paneJobs paneKind = iota
	paneGroups
	paneSlices
	paneReservations
	panePending
	paneEvents

	paneCount
)

// pane is a table.
type pane struct {
	name    string
	columns []column
	rows    []row
}

// column of a pane. The last one takes the room that is left.
type column struct {
	name  string
	width int // cells, at most
}

// row of a pane. cells is called when it is drawn or searched.
type row struct {
	mood  mood
	cells func() []string
	job   schema.Address   // that it is about, zero if it is about none
	title bool             // of the rows below it
	group []selection.Term // the conditions of the group that it is about, nil if it is about none
}

// mood is the style of a line.
type mood int

// The moods.
const (
	moodPlain mood = iota
	moodBad
	moodWaiting
	moodGood
	moodQuiet
	moodTitle
)

func newBoard(v *View) *board {
	b := &board{view: v, whole: v, head: v.headLines()}
	b.panes[paneJobs] = v.jobPane()
	b.panes[paneGroups] = groupPane(v, len(b.panes[paneJobs].rows))
	b.panes[paneSlices] = v.slicePane()
	b.panes[paneReservations] = v.reservationPane()
	b.panes[panePending] = v.pendingPane()
	b.panes[paneEvents] = v.eventPane()
	return b
}

// headLines show the place, the leader, and how much there is of what.
func (v *View) headLines() []headLine {
	where := v.place
	if v.workspace != "" {
		where += ", workspace " + v.workspace
	}
	lines := []headLine{
		{moodTitle, fmt.Sprintf("%s  %s", v.now.Local().Format(time.TimeOnly), where)},
		v.leaderLine(),
		{moodPlain, v.counts()},
	}
	for _, r := range v.plan.Blocked {
		lines = append(lines, headLine{moodBad, "Blocked: " + r.Detail})
	}
	if n := len(v.plan.Drift); n > 0 {
		d := v.plan.Drift[0]
		text := fmt.Sprintf("Found: %s: %s; %s", d.Addr, events.Unnamed(d.Found, d.Addr.String()), d.Then)
		if n > 1 {
			text += fmt.Sprintf(" (and %d more)", n-1)
		}
		lines = append(lines, headLine{moodWaiting, text})
	}
	return lines[:min(len(lines), 6)]
}

func (v *View) leaderLine() headLine {
	led := "no controller watches"
	m := moodWaiting
	switch {
	case v.silent, v.unsure:
		led = v.silence()
	case v.led:
		led, m = fmt.Sprintf("%s leads, epoch %d (pid %d on %s)", v.lease.Command, v.lease.Epoch, v.lease.PID, v.lease.Host), moodGood
		if v.observed() {
			m = moodWaiting
		}
	}
	if p := v.Doc.Paused; p != nil {
		return headLine{moodWaiting, "PAUSED by " + p.By + " since " + p.At.Local().Format(time.DateTime) + progress.Because(p.Reason) + " | " + led}
	}
	return headLine{m, led}
}

// counts are the jobs by status, what there is of slices, and what they cost.
func (v *View) counts() string {
	byStatus := map[schema.JobStatus]int{}
	for addr, j := range v.Doc.Jobs {
		if v.shown(addr) {
			byStatus[j.Status]++
		}
	}
	var parts []string
	for _, s := range []schema.JobStatus{schema.JobRunning, schema.JobPending, schema.JobScheduled, schema.JobFailed, schema.JobStopped, schema.JobSucceeded} {
		if n := byStatus[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	text := cmp.Or(strings.Join(parts, ", "), "no jobs")
	up, asked, chips := 0, 0, 0
	for name, s := range v.Doc.Slices {
		if v.found.Filtered() && !v.shownSlice(name, s) {
			continue
		}
		switch {
		case s.Spec.On != "":
		case s.UpAt.IsZero():
			asked++
		default:
			up++
			chips += accelerators.Chips(&s.Spec)
		}
	}
	text += fmt.Sprintf(" | %s up", terminal.Counted(up, "slice", "slices"))
	if asked > 0 {
		text += fmt.Sprintf(", %d coming", asked)
	}
	if chips > 0 {
		text += fmt.Sprintf(", %s", terminal.Counted(chips, "chip", "chips"))
	}
	if v.cost.Known() {
		text += " | " + render.Price(v.cost) + " an hour"
	}
	return text
}

// slicePane lists the slices by zone, each zone under a line of its own.
func (v *View) slicePane() pane {
	p := pane{name: "Slices", columns: []column{{"SLICE", 40}, {"TYPE", 14}, {"HOSTS", 5}, {"FOR", 8}, {"OWNER, NOTE", 0}}}
	zones := map[string][]*state.Slice{}
	for name, s := range v.Doc.Slices {
		if v.shownSlice(name, s) {
			zone := cmp.Or(s.Spec.Zone, string(s.Spec.Provider))
			zones[zone] = append(zones[zone], s)
		}
	}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		in := zones[zone]
		slices.SortFunc(in, func(a, b *state.Slice) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
		chips := 0
		for _, s := range in {
			chips += accelerators.Chips(&s.Spec)
		}
		title := zone + ": " + terminal.Counted(len(in), "slice", "slices")
		if chips > 0 {
			title += ", " + terminal.Counted(chips, "chip", "chips")
		}
		p.rows = append(p.rows, row{mood: moodTitle, title: true, cells: func() []string { return []string{title} }})
		for _, s := range in {
			p.rows = append(p.rows, v.sliceRow(s))
		}
	}
	return p
}

func (v *View) sliceRow(s *state.Slice) row {
	note, since, m := "", s.UpAt, moodPlain
	switch {
	case !s.Terminating.IsZero():
		note, m = "goes: "+s.Terminating.Text, moodWaiting
	case s.Failed != "":
		note, m = s.Error, moodBad
	case s.UpAt.IsZero():
		note, since, m = "is coming up", s.PendingSince, moodWaiting
		if s.Queued {
			note = "waits in the cloud's queue"
		}
	case !s.IdleSince.IsZero():
		note, m = "idle for "+terminal.RoundAge(v.now.Sub(s.IdleSince)), moodQuiet
	case s.Spec.On != "":
		note = fmt.Sprintf("on host %d of %s", s.Spec.OnHost, s.Spec.On)
	}
	return row{mood: m, job: v.holder(s), cells: func() []string {
		kind := selection.TypeOf(&s.Spec)
		owner := s.Spec.Owner.String()
		if note != "" {
			owner += ", " + note
		}
		return []string{"  " + s.Spec.Name, kind, fmt.Sprint(s.Spec.Hosts), v.ago(since), owner}
	}}
}

// holder is the job that a slice is of, zero if there is none.
func (v *View) holder(s *state.Slice) schema.Address {
	if v.Doc.Jobs[s.Spec.Owner] != nil {
		return s.Spec.Owner
	}
	for addr, j := range v.Doc.Jobs {
		if slices.Contains(j.Slices, s.Spec.Name) {
			return addr
		}
	}
	return schema.Address{}
}

// ago is how long ago a time is, "-" if there is none.
func (v *View) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return coarseAge(v.now.Sub(t))
}

// coarseAge is a duration that fits into eight cells.
func coarseAge(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func (v *View) reservationPane() pane {
	p := pane{name: "Reservations", columns: []column{
		{"RESERVATION", 40}, {"UP", 5}, {"COMING", 6}, {"FREE", 5}, {"MIN", 4}, {"MAX", 4}, {"ENDS", 19}, {"NOTE", 0},
	}}
	for _, r := range v.pools() {
		if !v.shown(r.Addr) {
			continue
		}
		m := moodPlain
		if len(r.Reasons) > 0 || r.Expired {
			m = moodWaiting
		}
		p.rows = append(p.rows, row{mood: m, cells: func() []string {
			return []string{
				r.Addr.String(), fmt.Sprint(r.Allocated), fmt.Sprint(r.Pending), fmt.Sprint(r.Free),
				fmt.Sprint(r.Min.Slices), fmt.Sprint(r.Max.Slices), v.ends(&r), poolNote(&r),
			}
		}})
	}
	return p
}

// pendingPane has a row for each reason of what waits, what needs a user's attention first.
func (v *View) pendingPane() pane {
	p := pane{name: "Waiting", columns: []column{{"ADDRESS", 40}, {"REASON", 0}}}
	pending := slices.Clone(v.plan.Pending)
	slices.SortStableFunc(pending, func(a, b plan.Pending) int { return cmp.Compare(urgency(&a), urgency(&b)) })
	for i := range pending {
		w := &pending[i]
		if !v.shown(w.Addr) {
			continue
		}
		m := moodWaiting
		switch {
		case w.Blocked:
			m = moodBad
		case w.Underway:
			m = moodPlain
		}
		for n, reason := range w.Reasons {
			p.rows = append(p.rows, row{mood: m, job: w.Addr, cells: func() []string {
				if n > 0 {
					return []string{"", reason}
				}
				return []string{w.Addr.String(), reason}
			}})
		}
	}
	return p
}

func urgency(w *plan.Pending) int {
	switch {
	case w.Blocked:
		return 0
	case w.Underway:
		return 2
	}
	return 1
}

// eventPane has the last events, the newest first.
func (v *View) eventPane() pane {
	p := pane{name: "Events", columns: []column{{"AT", 14}, {"KIND", 8}, {"WHAT", 0}}}
	for i := range slices.Backward(v.events) {
		e := &v.events[i]
		if len(v.only) > 0 && (e.Addr == schema.Address{} || !v.shown(e.Addr)) {
			continue
		}
		p.rows = append(p.rows, row{mood: eventMood(e.Kind), job: e.Addr, cells: func() []string {
			return []string{e.At.Local().Format(events.Time), string(e.Kind), events.About(e) + events.Text(e)}
		}})
	}
	return p
}

func eventMood(kind state.EventKind) mood {
	switch kind {
	case state.EventEnded, state.EventDrift, state.EventProvider, state.EventBudget:
		return moodWaiting
	case state.EventLease, state.EventConfig, state.EventNotice:
		return moodQuiet
	case state.EventReady:
		return moodGood
	case state.EventLaunched, state.EventStarted, state.EventJob, state.EventPending, state.EventSlice:
	}
	return moodPlain
}
