package testruns

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fray-ml/fray/terminal"
)

// TestPolicyLibrary runs the cases of the policies that fray publishes: each of the twelve
// has cases that pass and cases that are denied.
func TestPolicyLibrary(t *testing.T) {
	t.Parallel()
	var out, problems bytes.Buffer
	a := &terminal.Terminal{Stdout: &out, Stderr: &problems, NoColor: true}
	if err := Policies(t.Context(), a, "../library/policies", Options{Directory: "tests", Verbose: true, Parallelism: 1}); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), problems.String())
	}
	for _, name := range []string{
		"budget", "checkpoints", "idle_timeouts", "images", "job_size", "labels", "long_running", "on_demand", "protected", "retries", "secrets", "zones",
	} {
		if !strings.Contains(out.String(), "denied "+name) {
			t.Errorf("no case is denied by %s", name)
		}
	}
	if got := strings.Count(out.String(), "... pass ("); got < 36 {
		t.Errorf("%d cases passed, want three for each of twelve policies", got)
	}
}
