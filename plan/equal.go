package plan

import (
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// SameResource reports whether two declarations are the same.
func SameResource(a, b state.Resource) bool {
	switch {
	case a.Namespace != nil && b.Namespace != nil:
		return schema.EqualNamespaces(a.Namespace, b.Namespace)
	case a.Reservation != nil && b.Reservation != nil:
		return schema.EqualReservations(a.Reservation, b.Reservation)
	case a.Group != nil && b.Group != nil:
		return *a.Group == *b.Group
	case a.Notification != nil && b.Notification != nil:
		return schema.EqualNotifications(a.Notification, b.Notification)
	}
	return false
}
