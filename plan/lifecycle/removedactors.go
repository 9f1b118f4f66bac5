package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// forgetRemovedActors forgets those that went long ago, or before too many others.
func (d *Jobs) forgetRemovedActors() {
	launch.ForgetActors(d.Next.RemovedActors, d.Now, func(id string) { delete(d.Mutable().RemovedActors, id) })
}

// recordRemovedActors records the actors that a job hosts and that the next spec does not
// have, nil if the job goes: calls of them end instead of waiting for them.
func (d *Jobs) recordRemovedActors(j *state.Job, next *schema.Job) {
	kept := next.ActorNames()
	if next != nil && next.Namespace != j.Spec.Namespace {
		kept = nil
	}
	names := slices.DeleteFunc(j.Spec.ActorNames(), func(name string) bool { return slices.Contains(kept, name) })
	if len(names) == 0 {
		return
	}
	if before, there := d.Next.RemovedActors[j.ID]; there && before.Namespace == j.Spec.Namespace {
		names = slices.Concat(names, before.Names)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	d.Mutable().RemovedActors[j.ID] = state.RemovedActors{Namespace: j.Spec.Namespace, Names: names, At: d.Now, By: j.RemovedBy}
}
