package configuration

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// Unprotected is what is desired without what keeps it from being taken down
// after the test.
func Unprotected(d schema.Desired) schema.Desired {
	d.Controller = nil
	d.Jobs, d.Reservations = slices.Clone(d.Jobs), slices.Clone(d.Reservations)
	for i := range d.Jobs {
		d.Jobs[i].Lifecycle.PreventDestroy = false
	}
	for i := range d.Reservations {
		d.Reservations[i].Lifecycle.PreventDestroy = false
	}
	return d
}
