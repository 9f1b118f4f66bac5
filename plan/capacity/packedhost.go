package capacity

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Closed says why a slice of a pool takes no packed tasks, nothing if it does, now or when it
// is up.
func (d *HostCapacity) Closed(spec *schema.SliceSpec) plan.Reason {
	name := spec.Name
	s, st := d.Next.Slices[name], d.Listed[name]
	switch {
	case s == nil:
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s is not there", name))
	case !s.Terminating.IsZero():
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s is being deleted: %s", name, s.Terminating.Text))
	case st == nil && s.Tries >= Rejections:
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s cannot be had: %s", name, s.Error))
	case st == nil && s.Listed && !d.Known(&s.Spec) && s.Spec.Fixed() != spec.Fixed():
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s has another shape", name))
	case st == nil:
		return plan.Reason{}
	case st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting:
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s is %s", name, st.Phase))
	case st.Spec.Fixed() != spec.Fixed():
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s has another shape", name))
	}
	for _, h := range d.Obs.Hosts[name] {
		if h.Notice != "" {
			return plan.Because(plan.WaitRoom, fmt.Sprintf("host %d of slice %s has notice: %s", h.Host, name, h.Notice))
		}
	}
	return plan.Reason{}
}
