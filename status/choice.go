package status

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/state"
)

// notFirst names the alternative that a job has where that is not the one it prefers.
func notFirst(j *state.Job) string {
	c := j.Chosen()
	if c == nil || j.Status.Ended() {
		return ""
	}
	all := j.Spec.Resources.Accelerators
	if i := slices.Index(all, c.Accelerator); i > 0 {
		return fmt.Sprintf("[on %s, alternative %d of %d]", c.Accelerator, i+1, len(all))
	}
	return ""
}

// choiceLines are which of its alternatives a job was given, and why none of those before
// it in the list.
func choiceLines(j *state.Job) []string {
	c := j.Chosen()
	if c == nil {
		return nil
	}
	lines := []string{fmt.Sprintf("accelerator: %s, %s", c.Accelerator, c.Reason.Text())}
	for _, p := range c.Passed {
		line := fmt.Sprintf("  passed: %s (%s)", p.Accelerator, p.Cause)
		if p.Text != "" {
			line += ": " + p.Text
		}
		lines = append(lines, line)
	}
	return lines
}
