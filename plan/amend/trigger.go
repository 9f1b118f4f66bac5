package amend

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
)

// retrigger brings the triggers of all jobs up to date: they name what has moved
// by its new address, and its digest is of what it is called by now, so that it
// is no change. A digest of what it was before is left as it is: that change is
// still to be heeded. What is desired has moved already.
type retrigger struct {
	*names
	before, after map[schema.Trigger]schema.Digest // as desired before the move and after it
}

func (m *mover) retrigger() retrigger {
	r := retrigger{names: m.names}
	var old []schema.Trigger
	for _, j := range m.doc.Jobs {
		old = append(old, j.Spec.Lifecycle.TriggeredBy...)
	}
	for i := range m.doc.Desired.Jobs {
		old = append(old, m.doc.Desired.Jobs[i].Lifecycle.TriggeredBy...)
	}
	if len(old) == 0 {
		return r
	}
	renamed := make([]schema.Trigger, 0, len(old))
	for _, t := range old {
		renamed = append(renamed, r.renamed(t))
	}
	r.before = change.TriggerDigests(&m.doc.Desired, old)
	r.after = change.TriggerDigests(&m.next.Desired, renamed)
	return r
}

// renamed is a trigger with the address that it has now. One with a digest names
// one instance, one without all instances of a block.
func (r *retrigger) renamed(t schema.Trigger) schema.Trigger {
	if t.Digest == "" {
		t.Addr = r.reference(t.Addr)
	} else {
		t.Addr, _ = r.rename(t.Addr)
	}
	return t
}

// lifecycle returns a lifecycle after the move, and whether it is another one.
func (r *retrigger) lifecycle(l schema.Lifecycle) (schema.Lifecycle, bool) {
	changed := false
	for i, t := range l.TriggeredBy {
		to := r.renamed(t)
		if t.Digest != "" && t.Digest == r.before[schema.Trigger{Addr: t.Addr, Path: t.Path}] {
			to.Digest = r.after[schema.Trigger{Addr: to.Addr, Path: to.Path}]
		}
		if to == t {
			continue
		}
		if !changed {
			l.TriggeredBy, changed = slices.Clone(l.TriggeredBy), true
		}
		l.TriggeredBy[i] = to
	}
	if changed {
		slices.SortFunc(l.TriggeredBy, func(a, b schema.Trigger) int { return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Path, b.Path)) })
	}
	return l, changed
}
