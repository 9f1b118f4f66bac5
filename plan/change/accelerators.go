package change

import (
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// keepAccelerators keeps the alternatives that are recorded, and with them what the first
// of them fills in.
func keepAccelerators(want, recorded *schema.Job, _ string) {
	to, from := &want.Resources, &recorded.Resources
	if len(to.Accelerators) > 0 || len(from.Accelerators) > 0 {
		to.TPU, to.GPU = from.TPU, from.GPU
	}
	to.Accelerators = from.Accelerators
}

// KeepAlternative takes changes of what a job may run on for changes that touch nothing,
// where what it has is among it before and after: inUse, "" while it has none of its
// alternatives yet.
func KeepAlternative(attrs []*plan.AttrChange, cur, want *schema.Job, inUse schema.Accelerator) {
	was, is := &cur.Resources, &want.Resources
	if len(was.Accelerators)+len(is.Accelerators) == 0 {
		return
	}
	if len(was.Accelerators) == 0 && was.Accelerator() == "" || is.Accelerator() == "" || inUse != "" && !is.IsAlternative(inUse) {
		return
	}
	for i := range attrs {
		if a := attrs[i]; a.Verb == plan.VerbReplace && isAccelerator(a.Path) {
			a.Verb = plan.VerbUpdate
		}
	}
}

// isAccelerator reports whether an attribute says what a job may run on.
func isAccelerator(path string) bool {
	within, ok := strings.CutPrefix(path, "resources.")
	return ok && (within == "accelerators" || within == "tpu" || within == "gpu" || strings.HasPrefix(within, "gpu."))
}
