package notice

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Delivery is one notice for one receiver.
type Delivery struct {
	Notice Notice
	To     schema.Receiver
}

// Delivered returns the ledger without a delivery that a receiver has taken.
func Delivered(l *Ledger, id string, to schema.Receiver) *Ledger {
	return settled(l, id, to, false)
}

// GivenUp returns the ledger without a delivery that a receiver will never take.
func GivenUp(l *Ledger, id string, to schema.Receiver) *Ledger {
	return settled(l, id, to, true)
}

func settled(l *Ledger, id string, to schema.Receiver, dropped bool) *Ledger {
	i := slices.IndexFunc(l.Notices, func(n Notice) bool { return n.ID == id })
	if i < 0 || !slices.Contains(l.Notices[i].To, to) {
		return l
	}
	next := l.clone()
	n := next.Notices[i]
	n.To = slices.DeleteFunc(slices.Clone(n.To), func(r schema.Receiver) bool { return r == to })
	if next.Notices[i] = n; len(n.To) == 0 {
		next.Notices = slices.Delete(next.Notices, i, i+1)
	}
	delete(next.Receivers, ReceiverName(n.Notification, to))
	if dropped {
		next.Dropped[n.Notification]++
	}
	return next
}

// Failed returns the ledger with the failure of a delivery. It is l itself where the
// receiver has failed so before, so that a dead receiver does not have it written again and again.
func Failed(l *Ledger, of schema.Address, to schema.Receiver, f Failure) *Ledger {
	name := ReceiverName(of, to)
	was, failing := l.Receivers[name]
	if failing && was.Cause == f.Cause && was.Code == f.Code {
		return l
	}
	if failing {
		f.Since = was.Since
	}
	next := l.clone()
	next.Receivers[name] = f
	return next
}

// Waiting are the deliveries to a receiver, oldest first.
func (l *Ledger) Waiting(of schema.Address, to schema.Receiver) []Delivery {
	var all []Delivery
	for _, n := range l.Notices {
		if n.Notification == of && slices.Contains(n.To, to) {
			all = append(all, Delivery{Notice: n, To: to})
		}
	}
	return all
}

// Test is a notice that tries the receivers of a notification.
func Test(id string, n *schema.Notification, stack, workspace string, now time.Time) Notice {
	item := Item{Addr: n.Addr, Text: "this message was asked for by fray notify test", Since: now}
	return Notice{
		ID: id, Notification: n.Addr, Kind: schema.NoticeTest, Status: Firing, Stack: stack, Workspace: workspace, At: now,
		Title: title(schema.NoticeTest, Firing, []Item{item}), Items: []Item{item},
	}
}
