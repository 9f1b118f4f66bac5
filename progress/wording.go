package progress

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Outcome is the state of a task as people read it.
func Outcome(s schema.TaskState) string { return strings.ReplaceAll(string(s), "_", " ") }

// Because is a reason as it follows a status: ": REASON", "" for none.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Steady is a reason without the time that counts down in it.
func Steady(reason string) string {
	before, _, _ := strings.Cut(reason, "; next try in ")
	return before
}

// ReasonLines name each address with its reasons below it.
func ReasonLines(pending []plan.Pending) string {
	var b strings.Builder
	for _, w := range pending {
		name := w.Addr.String()
		if w.Addr.IsZero() {
			name = "what nothing declares"
		}
		fmt.Fprintf(&b, "  %s\n", name)
		for _, reason := range w.Reasons {
			fmt.Fprintf(&b, "      %s\n", reason)
		}
	}
	return b.String()
}
