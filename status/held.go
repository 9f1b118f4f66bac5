package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// heldJSON reports why a slice is still there although its job does not run any more.
type heldJSON struct {
	Reason string `json:"reason"`
	Free   string `json:"free"` // what frees it
}

// heldOf says of a slice why it is held, nil while its job runs or may. What is
// packed on another's host holds nothing by itself. acts: a controller leads, and
// changes what it sees.
func heldOf(doc *state.Document, s *state.Slice, acts bool) *heldJSON {
	owner := s.Spec.Owner
	if owner.Kind != schema.KindJob && owner.Kind != schema.KindActorService || s.Spec.On != "" {
		return nil
	}
	h := &heldJSON{}
	j := doc.Jobs[owner]
	switch {
	case j == nil:
		h.Reason = fmt.Sprintf("%s is no longer declared", owner)
	case j.Status.Ended():
		h.Reason = fmt.Sprintf("%s has %s", owner, endedAs(j.Status))
	default:
		return nil
	}
	kept := !s.IdleSince.IsZero() && s.Terminating.IsZero()
	switch {
	case kept && acts:
		h.Free = "the controller frees it when its idle time is over, if no job takes it before"
	case kept:
		h.Free = "fray watch frees it when its idle time is over"
	case acts:
		h.Free = "it is being deleted"
	case j == nil:
		h.Free = "run fray apply or fray watch"
	default:
		h.Free = fmt.Sprintf("run fray apply or fray watch; fray destroy --target=%s removes the job too", owner)
	}
	if kept {
		h.Reason += fmt.Sprintf(", and it is kept for another job since %s", s.IdleSince.Local().Format(time.DateTime))
	}
	return h
}

func endedAs(s schema.JobStatus) string {
	switch s {
	case schema.JobFailed:
		return "failed"
	case schema.JobStopped:
		return "stopped"
	case schema.JobSucceeded, schema.JobPending, schema.JobRunning, schema.JobScheduled:
	}
	return "succeeded"
}

// acts reports whether a controller leads and changes what it sees.
func (v *View) acts() bool {
	return v.led && !v.silent && !v.unsure && !v.observed() && v.Doc.Paused == nil
}

// held says of each job that does not run any more which slices and chips it still
// holds, and what frees them.
func (v *View) held() []string {
	type holding struct {
		heldJSON
		names []string
		chips int
	}
	var order []string
	byReason := map[string]*holding{}
	for _, name := range stack.SortedKeys(v.Doc.Slices) {
		s := v.Doc.Slices[name]
		h := heldOf(v.Doc, s, v.acts())
		if h == nil || !v.shownSlice(name, s) {
			continue
		}
		key := h.Reason + h.Free
		if byReason[key] == nil {
			byReason[key], order = &holding{heldJSON: *h}, append(order, key)
		}
		byReason[key].names = append(byReason[key].names, name)
		byReason[key].chips += accelerators.Chips(&s.Spec)
	}
	slices.Sort(order)
	lines := make([]string, 0, len(order))
	for _, key := range order {
		h := byReason[key]
		chips := ""
		if h.chips > 0 {
			chips = fmt.Sprintf(" (%s)", terminal.Counted(h.chips, "chip", "chips"))
		}
		lines = append(lines, fmt.Sprintf("Still held: %s%s, since %s: %s; %s.",
			terminal.Counted(len(h.names), "slice", "slices"), chips, h.Reason, someOf(h.names), h.Free))
	}
	return lines
}

// namedSlices is how many slices one line names.
const namedSlices = 20

// someOf lists names, the first of many.
func someOf(names []string) string {
	if more := len(names) - namedSlices; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedSlices], ", "), more)
	}
	return strings.Join(names, ", ")
}
