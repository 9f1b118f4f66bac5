package notice

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Input is what notices are decided on.
type Input struct {
	Now       time.Time
	Epoch     uint64 // of the lease
	Workspace string
	Leader    Leader
	Doc       *state.Document // as the step has left it
	Drift     []plan.Drift    // that the step has found
	Pending   []plan.Pending
	Expiries  []plan.Expiry
	// Budgets are uses of budgets beside those of chips, which follow from Doc.
	Budgets []BudgetUse
}

// BudgetUse is how much of a budget is used.
type BudgetUse struct {
	Namespace string // its scoped name
	// Unit is what is counted ("chips", "USD"), and Period for when ("2026-11"; "": at once).
	Unit, Period string
	Used, Limit  float64
}

// Decide returns the ledger with the notices that are due: l itself if there are none and
// nothing else changes. l is not changed.
func Decide(l *Ledger, in *Input) *Ledger {
	d := &decision{ledger: l, in: in}
	d.forget()
	var found *findings // the same for all notifications
	for _, addr := range slices.SortedFunc(maps.Keys(in.Doc.Resources), schema.Address.Compare) {
		n := in.Doc.Resources[addr].Notification
		if n == nil {
			continue
		}
		if found == nil {
			found = newFindings(in)
		}
		d.notification(n, in.Doc.Resources[addr].Since, found)
	}
	switch {
	case found == nil && l.Leader != nil:
		d.changed().Leader = nil // who leads is not followed any more
	case found != nil && (l.Leader == nil || *l.Leader != in.Leader):
		leader := in.Leader
		d.changed().Leader = &leader
	}
	return d.ledger
}

// decision is a ledger in the making.
type decision struct {
	ledger *Ledger
	in     *Input
	own    bool // the ledger is a copy
}

// changed is the ledger, as one that may be changed.
func (d *decision) changed() *Ledger {
	if !d.own {
		d.ledger, d.own = d.ledger.clone(), true
		d.ledger.Epoch = d.in.Epoch
	}
	return d.ledger
}

// forget drops what is known of notifications that are declared no more, with the notices
// that nothing is there to receive, and notices that are too old.
func (d *decision) forget() {
	declared := func(addr schema.Address) *schema.Notification { return d.in.Doc.Resources[addr].Notification }
	for addr := range d.ledger.Told {
		if declared(addr) == nil {
			delete(d.changed().Told, addr)
			delete(d.changed().Dropped, addr)
		}
	}
	for _, n := range slices.Clone(d.ledger.Notices) {
		has := []schema.Receiver(nil)
		if of := declared(n.Notification); of != nil {
			has = of.Receivers()
		}
		gone := slices.ContainsFunc(n.To, func(r schema.Receiver) bool { return !slices.Contains(has, r) })
		if gone || d.in.Now.Sub(n.At) > maxAge {
			d.changed().keepOnly(n.ID, func(r schema.Receiver) bool { return slices.Contains(has, r) && d.in.Now.Sub(n.At) <= maxAge })
		}
	}
	for name := range d.ledger.Receivers {
		if !slices.ContainsFunc(d.ledger.Notices, func(n Notice) bool {
			return slices.ContainsFunc(n.To, func(r schema.Receiver) bool { return ReceiverName(n.Notification, r) == name })
		}) {
			delete(d.changed().Receivers, name)
		}
	}
}

// keepOnly leaves of the receivers of a notice those that keep names. Those that still exist and
// never got it are counted.
func (l *Ledger) keepOnly(id string, keep func(schema.Receiver) bool) {
	i := slices.IndexFunc(l.Notices, func(n Notice) bool { return n.ID == id })
	if i < 0 {
		return
	}
	n := l.Notices[i]
	n.To = slices.DeleteFunc(slices.Clone(n.To), func(r schema.Receiver) bool { return !keep(r) })
	if len(n.To) < len(l.Notices[i].To) {
		if _, told := l.Told[n.Notification]; told {
			l.Dropped[n.Notification] += len(l.Notices[i].To) - len(n.To)
		}
	}
	if l.Notices[i] = n; len(n.To) == 0 {
		l.Notices = slices.Delete(l.Notices, i, i+1)
	}
}

// notification decides what one notification is to be told.
func (d *decision) notification(n *schema.Notification, since time.Time, found *findings) {
	told, known := d.ledger.Told[n.Addr]
	if !known {
		told = Told{Since: since}
		d.changed().Told[n.Addr] = told
	}
	if slices.Contains(n.On, schema.NoticeLeaderChanged) && d.ledger.Leader != nil && *d.ledger.Leader != d.in.Leader {
		text := fmt.Sprintf("%s on %s (pid %d) leads the stack; before, pid %d on %s did",
			d.in.Leader.Command, d.in.Leader.Host, d.in.Leader.PID, d.ledger.Leader.PID, d.ledger.Leader.Host)
		d.tell(n, schema.NoticeLeaderChanged, Firing, []Item{{Text: text, Since: d.in.Now}})
	}
	open := told.Open
	for _, kind := range schema.NoticeKinds() {
		if kind == schema.NoticeLeaderChanged {
			continue
		}
		due := map[string]Condition{}
		if slices.Contains(n.On, kind) {
			due = found.of(n, kind, told.Since)
		}
		opened, closed := differences(open, due, func(key string, c Condition) bool {
			return c.Kind == kind && (!slices.Contains(n.On, kind) || !found.holds(key, c, n))
		})
		if len(opened)+len(closed) == 0 {
			continue
		}
		open = maps.Clone(open)
		if open == nil {
			open = map[string]Condition{}
		}
		for _, key := range closed {
			delete(open, key)
		}
		for _, key := range opened {
			open[key] = due[key]
		}
		if slices.Contains(n.On, kind) { // else who declared it does not want to know any more
			d.tell(n, kind, Resolved, found.resolutions(kind, told.Open, closed))
		}
		d.tell(n, kind, Firing, itemsOf(due, opened))
		d.changed().Told[n.Addr] = Told{Since: told.Since, Open: open}
	}
}

// differences are the keys of what is due and not open, and of what is open and ended; sorted.
func differences(open, due map[string]Condition, ended func(string, Condition) bool) (opened, closed []string) {
	for key, c := range open {
		if _, still := due[key]; !still && ended(key, c) {
			closed = append(closed, key)
		}
	}
	for key := range due {
		if _, known := open[key]; !known {
			opened = append(opened, key)
		}
	}
	slices.Sort(opened)
	slices.Sort(closed)
	return opened, closed
}

func itemsOf(of map[string]Condition, keys []string) []Item {
	items := make([]Item, 0, len(keys))
	for _, key := range keys {
		items = append(items, of[key].Item)
	}
	return items
}

// tell adds a notice. The oldest ones give way to it where too many wait.
func (d *decision) tell(n *schema.Notification, kind schema.NoticeKind, status Status, items []Item) {
	if len(items) == 0 {
		return
	}
	l := d.changed()
	l.Number++
	made := Notice{
		ID: fmt.Sprintf("%s-%d-%d", d.in.Doc.Stack(), d.in.Epoch, l.Number), Notification: n.Addr, Kind: kind, Status: status,
		Stack: d.in.Doc.Stack(), Workspace: d.in.Workspace, At: d.in.Now, Title: title(kind, status, items),
		Items: slices.Clone(items[:min(len(items), maxItems)]), More: max(0, len(items)-maxItems), To: n.Receivers(),
	}
	for i := range made.Items {
		made.Items[i].Text = cut(made.Items[i].Text)
	}
	l.Notices = append(l.Notices, made)
	waiting := 0
	for _, each := range slices.Backward(l.Notices) {
		if each.Notification == n.Addr {
			waiting++
		}
	}
	for i := 0; waiting > maxWaiting; waiting-- {
		for l.Notices[i].Notification != n.Addr {
			i++
		}
		l.Dropped[n.Addr] += len(l.Notices[i].To)
		l.Notices = slices.Delete(l.Notices, i, i+1)
	}
}
