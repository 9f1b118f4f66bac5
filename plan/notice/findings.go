package notice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// slack is how far below its mark the use of a budget falls before that is told, so that a
// use around the mark is not told again and again.
const slack = 0.05

// findings are what is the case, by the keys of conditions.
type findings struct {
	in      *Input
	drift   map[string]Condition
	failed  map[string]Condition
	ended   map[string]Condition // reservations
	pending map[string]waiting
	budgets map[string]BudgetUse
}

// waiting is a job that is pending.
type waiting struct {
	Condition
	comes bool // it waits for other jobs, and will come about
}

func newFindings(in *Input) *findings {
	f := &findings{
		in: in, drift: map[string]Condition{}, failed: map[string]Condition{}, ended: map[string]Condition{},
		pending: map[string]waiting{}, budgets: map[string]BudgetUse{},
	}
	for _, d := range slices.Concat(in.Drift, change.SkippedDrift(in.Doc)) {
		if !d.Kind.IsLifecycle() {
			f.drifted(d)
		}
	}
	reasons := map[schema.Address]*plan.Pending{}
	for i := range in.Pending {
		reasons[in.Pending[i].Addr] = &in.Pending[i]
	}
	for addr, j := range in.Doc.Jobs {
		f.job(addr, j, reasons[addr])
	}
	for _, j := range in.Doc.Past {
		f.job(j.Spec.Addr, j, nil)
	}
	for _, e := range in.Expiries {
		if e.Over {
			key := fmt.Sprintf("%s %d", e.Addr, e.At.Unix())
			f.ended[key] = Condition{schema.NoticeReservationEnded, Item{
				Addr: e.Addr, Namespace: f.namespaceOf(e.Addr), Since: e.At, Text: "the time of the reservation is over; its slices are released as jobs end",
			}}
		}
	}
	for _, use := range slices.Concat(ChipUses(in.Doc), in.Budgets) {
		if use.Limit > 0 {
			f.budgets[fmt.Sprintf("%s %s %s", use.Namespace, use.Unit, use.Period)] = use
		}
	}
	return f
}

func (f *findings) drifted(d plan.Drift) {
	key := fmt.Sprintf("%s %s %s", d.Kind, d.Addr, d.Slice)
	text := d.Found
	if d.Then != "" {
		text += "; " + d.Then
	}
	f.drift[key] = Condition{schema.NoticeDrift, Item{
		Addr: d.Addr, Namespace: f.namespaceOf(d.Addr), Slice: d.Slice, Cause: string(d.Kind), Text: text, Since: f.in.Now,
	}}
}

func (f *findings) job(addr schema.Address, j *state.Job, why *plan.Pending) {
	item := Item{Addr: addr, Namespace: j.Spec.Namespace}
	switch j.Status {
	case schema.JobFailed:
		item.Since, item.Text, item.Cause = j.EndedAt, j.Reason, string(schema.TaskFailed)
		if last := j.Last(); last != nil {
			item.Cause = string(last.Outcome)
			item.Text = change.WithCause(fmt.Sprintf("attempt %d was the last one", last.Number), j.Reason)
		}
		f.failed[fmt.Sprintf("%s %d", j.ID, j.Attempt)] = Condition{schema.NoticeJobFailed, item}
	case schema.JobScheduled:
		if r := j.Scheduled; r != nil && r.Outcome == schema.JobFailed {
			item.Since, item.Cause = r.EndedAt, string(schema.TaskFailed)
			item.Text = change.WithCause(fmt.Sprintf("run %d failed", r.Ended), r.Reason)
			f.failed[fmt.Sprintf("%s run %d", j.ID, r.Ended)] = Condition{schema.NoticeJobFailed, item}
		}
	case schema.JobPending:
		text := cmp.Or(j.Reason, "no reason is known yet")
		item.Since = pendingSince(j)
		w := waiting{}
		if why != nil {
			item.Cause, w.comes = string(why.Kind), why.Kind == plan.WaitDependency
			if len(why.Reasons) > 0 {
				text = why.Reasons[0] + change.More(len(why.Reasons)-1)
			}
		}
		item.Text = text
		w.Condition = Condition{schema.NoticeJobPending, item}
		f.pending[pendingKey(j)] = w
	case schema.JobRunning, schema.JobSucceeded, schema.JobStopped:
	}
}

// pendingSince is since when a job is pending: since it was admitted, or since its last attempt ended.
func pendingSince(j *state.Job) time.Time {
	since := j.AdmittedAt
	if last := j.Last(); last != nil && last.EndedAt.After(since) {
		since = last.EndedAt
	}
	return since
}

func pendingKey(j *state.Job) string { return fmt.Sprintf("%s %d", j.ID, j.Attempt) }

func (f *findings) namespaceOf(addr schema.Address) string {
	if j := f.in.Doc.Jobs[addr]; j != nil {
		return j.Spec.Namespace
	}
	r := f.in.Doc.Resources[addr]
	switch {
	case r.Reservation != nil:
		return r.Reservation.Namespace
	case r.Group != nil:
		return r.Group.Namespace
	}
	return ""
}

// of are the conditions of a kind that a notification is to be told.
func (f *findings) of(n *schema.Notification, kind schema.NoticeKind, since time.Time) map[string]Condition {
	due := map[string]Condition{}
	add := func(key string, c Condition) {
		if len(n.Namespaces) == 0 || slices.Contains(n.Namespaces, c.Item.Namespace) {
			due[string(kind)+" "+key] = c
		}
	}
	switch kind {
	case schema.NoticeDrift:
		for key, c := range f.drift {
			add(key, c)
		}
	case schema.NoticeJobFailed:
		for key, c := range f.failed {
			if !c.Item.Since.Before(since) {
				add(key, c)
			}
		}
	case schema.NoticeJobPending:
		for key, w := range f.pending {
			if !w.comes && !w.Item.Since.IsZero() && f.in.Now.Sub(w.Item.Since) >= time.Duration(n.PendingAfter) {
				add(key, w.Condition)
			}
		}
	case schema.NoticeReservationEnded:
		for key, c := range f.ended {
			if !c.Item.Since.Before(since) {
				add(key, c)
			}
		}
	case schema.NoticeBudget:
		for key, use := range f.budgets {
			if use.Used >= n.BudgetAt*use.Limit {
				add(key, Condition{schema.NoticeBudget, f.budgetItem(&use)})
			}
		}
	case schema.NoticeLeaderChanged, schema.NoticeTest:
	}
	return due
}

func (f *findings) budgetItem(use *BudgetUse) Item {
	return Item{
		Addr: schema.ScopedAddress(schema.KindNamespace, use.Namespace), Namespace: use.Namespace, Cause: use.Unit, Since: f.in.Now,
		Used: use.Used, Limit: use.Limit, Text: budgetText(use),
	}
}

// holds reports whether a condition that was told is still so.
func (f *findings) holds(key string, c Condition, n *schema.Notification) bool {
	key = key[len(c.Kind)+1:]
	switch c.Kind {
	case schema.NoticeDrift:
		_, found := f.drift[key]
		return found || f.isDrifted(&c.Item)
	case schema.NoticeJobFailed:
		_, found := f.failed[key]
		return found
	case schema.NoticeJobPending:
		_, found := f.pending[key]
		return found
	case schema.NoticeReservationEnded:
		_, found := f.ended[key]
		return found
	case schema.NoticeBudget:
		use, found := f.budgets[key]
		return found && use.Used >= (n.BudgetAt-slack)*use.Limit
	case schema.NoticeLeaderChanged, schema.NoticeTest:
	}
	return false
}

// isDrifted reports whether what drift has brought about is not repaired yet.
func (f *findings) isDrifted(item *Item) bool {
	if plan.DriftKind(item.Cause) == plan.DriftSliceUnreadable {
		return false // it is found anew as long as it lasts
	}
	s := f.in.Doc.Slices[item.Slice]
	if item.Slice != "" && s != nil && (s.UpAt.IsZero() || !s.Terminating.IsZero() || len(s.Edited) > 0) {
		return true
	}
	j := f.in.Doc.Jobs[item.Addr]
	return j != nil && j.Status == schema.JobPending
}

// resolutions are items that say what became of conditions that are no more. Some kinds of
// conditions end without a message.
func (f *findings) resolutions(kind schema.NoticeKind, open map[string]Condition, closed []string) []Item {
	var items []Item
	for _, key := range closed {
		item := open[key].Item
		switch kind {
		case schema.NoticeDrift:
			item.Text = "is as the state has it again: " + item.Text
		case schema.NoticeJobPending:
			item.Text = f.afterwards(&item)
		case schema.NoticeBudget:
			use, there := f.budgets[key[len(kind)+1:]]
			if item.Text = "has no such budget any more"; there {
				item.Used, item.Limit, item.Text = use.Used, use.Limit, budgetText(&use)
			}
		case schema.NoticeJobFailed, schema.NoticeReservationEnded, schema.NoticeLeaderChanged, schema.NoticeTest:
			continue
		}
		items = append(items, item)
	}
	return items
}

// afterwards is what became of a job that was pending.
func (f *findings) afterwards(item *Item) string {
	waited := f.in.Now.Sub(item.Since).Round(time.Second)
	j := f.in.Doc.Jobs[item.Addr]
	switch {
	case j == nil:
		return "is gone"
	case j.Status == schema.JobRunning:
		return fmt.Sprintf("runs, after it was pending for %s", waited)
	case j.Status == schema.JobPending:
		return fmt.Sprintf("began after it was pending for %s, and is pending again", waited)
	}
	return change.WithCause(string(j.Status), j.Reason)
}

// ChipUses are how many of the chips that namespaces may have their jobs hold.
func ChipUses(doc *state.Document) []BudgetUse {
	limits := map[string]int{}
	for _, r := range doc.Resources {
		n := r.Namespace
		if n == nil || n.MaxChips == 0 && n.Budget == 0 {
			continue
		}
		limit := n.MaxChips
		if n.Budget > 0 && (limit == 0 || n.Budget < limit) {
			limit = n.Budget
		}
		limits[n.Addr.Scoped()] = limit
	}
	if len(limits) == 0 {
		return nil
	}
	used := map[string]int{}
	for _, j := range doc.Jobs {
		if _, limited := limits[j.Spec.Namespace]; !limited || j.Status.Ended() {
			continue
		}
		for _, name := range j.Slices {
			if s := doc.Slices[name]; s != nil {
				used[j.Spec.Namespace] += accelerators.Chips(&s.Spec)
			}
		}
	}
	var uses []BudgetUse
	for name, limit := range limits {
		uses = append(uses, BudgetUse{Namespace: name, Unit: UnitChips, Used: float64(used[name]), Limit: float64(limit)})
	}
	return uses
}
