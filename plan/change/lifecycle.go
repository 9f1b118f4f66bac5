package change

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A lifecycle states what plans may do to a job or reservation and is no part of its spec:
// another one alone shows no change and touches nothing that runs. It is recorded
// at once, whatever else it waits for, so that the state knows how it was
// meant when the files say nothing of it any more.
//
// Its triggers are heeded like attributes (trigger.go): as long as the record has
// others, the job is still to be replaced.

// EqualLifecycles reports whether two lifecycle blocks state the same.
func EqualLifecycles(a, b *schema.Lifecycle) bool {
	return a.PreventDestroy == b.PreventDestroy && a.CreateBeforeDestroy == b.CreateBeforeDestroy &&
		a.Trigger == b.Trigger && slices.Equal(a.Ignore, b.Ignore) && slices.Equal(a.TriggeredBy, b.TriggeredBy)
}

// UnderLifecycle is a record with another lifecycle.
func UnderLifecycle(cur *state.Job, l schema.Lifecycle) *state.Job {
	next, spec := *cur, *cur.Spec
	spec.Lifecycle = l
	next.Spec = &spec
	if digest, err := schema.DigestOf(&spec); err == nil {
		next.Digest = digest
	}
	return &next
}

// Beside is a record with the lifecycle that is declared now, and with the
// sensitive values that went into its texts: neither is part of what the job is.
func Beside(want *schema.Job, cur *state.Job) *state.Job {
	next := cur
	if l := InForce(want, cur); !EqualLifecycles(&l, &cur.Spec.Lifecycle) {
		next = UnderLifecycle(cur, l)
	}
	if slices.Equal(want.Sensitive, cur.Spec.Sensitive) || !schema.EqualJobs(want, cur.Spec) {
		return next
	}
	hiding, spec := *next, *next.Spec
	spec.Sensitive = want.Sensitive
	hiding.Spec = &spec
	return &hiding
}

// remember records the lifecycles of a configuration in a document that may be
// changed. Diff does so too; but the step that was to may not have lived.
func remember(doc *state.Document, desired *schema.Desired) {
	for i := range desired.Jobs {
		want := &desired.Jobs[i]
		cur := doc.Jobs[want.Addr]
		if cur == nil {
			continue
		}
		if kept := Beside(want, cur); kept != cur {
			doc.Jobs[want.Addr] = kept
		}
	}
	for i := range desired.Reservations {
		want := &desired.Reservations[i]
		cur := doc.Resources[want.Addr]
		if cur.Reservation == nil || EqualLifecycles(&want.Lifecycle, &cur.Reservation.Lifecycle) {
			continue
		}
		kept := *cur.Reservation
		kept.Lifecycle = want.Lifecycle
		doc.Resources[want.Addr] = RecordOf(&kept, state.Resource{Reservation: &kept})
	}
}

// Remembers reports whether the state has all lifecycles of its configuration on
// record: those are taken in by a step, which an apply without changes spares itself.
func Remembers(doc *state.Document) bool {
	for i := range doc.Desired.Jobs {
		want := &doc.Desired.Jobs[i]
		if cur := doc.Jobs[want.Addr]; cur != nil {
			if Beside(want, cur) != cur {
				return false
			}
		}
	}
	for i := range doc.Desired.Reservations {
		want := &doc.Desired.Reservations[i]
		if cur := doc.Resources[want.Addr].Reservation; cur != nil && !EqualLifecycles(&want.Lifecycle, &cur.Lifecycle) {
			return false
		}
	}
	return true
}
