package amend

import (
	"slices"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func notificationAddr(n *schema.Notification) schema.Address { return n.Addr }

// notification is a notification as it is after a move, and whether it changes.
func (m *mover) notification(n schema.Notification) (schema.Notification, bool) {
	was := n.Namespaces
	var moves bool
	n.Addr, moves = m.rename(n.Addr)
	n.Namespaces = slices.Clone(was)
	for i, name := range was {
		n.Namespaces[i] = m.namespace(name)
	}
	slices.Sort(n.Namespaces)
	return n, moves || !slices.Equal(was, n.Namespaces)
}

// resealNotifications puts into next the notifications of doc as sealed with the present key.
func resealNotifications(doc, next *state.Document, r schema.Resealer) error {
	next.Desired.Notifications = slices.Clone(doc.Desired.Notifications)
	for i := range next.Desired.Notifications {
		var err error
		if next.Desired.Notifications[i], err = next.Desired.Notifications[i].Reseal(r); err != nil {
			return err
		}
	}
	for addr, resource := range doc.Resources {
		if resource.Notification == nil {
			continue
		}
		anew, err := resource.Notification.Reseal(r)
		if err != nil {
			return err
		}
		resource.Notification = &anew
		next.Resources[addr] = change.RecordOf(&anew, resource)
	}
	return nil
}
