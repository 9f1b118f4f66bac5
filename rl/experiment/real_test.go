package experiment_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestRealTensorboard has the package tensorboard read an event file. FRAY_TEST_TENSORBOARD_PYTHON names a Python
// that has it.
func TestRealTensorboard(t *testing.T) {
	python := os.Getenv("FRAY_TEST_TENSORBOARD_PYTHON")
	if python == "" {
		t.Skip("FRAY_TEST_TENSORBOARD_PYTHON names no Python with the package tensorboard")
	}
	dir := t.TempDir()
	writeEvents(t, dir)
	const script = `
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    print(tag, [(e.step, round(e.value, 4), int(e.wall_time)) for e in events.Scalars(tag)])
`
	out, err := exec.CommandContext(t.Context(), python, "-c", script, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{"reward [(10, 0.5124, 1767323045), (11, 0.5124, 1767323045)]", "n [(10, 3.0, 1767323045)", "loss [(10, nan"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got\n%s\nwant %s", out, want)
		}
	}
}
