package accelerators

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The Python package knows the same GPU types, so that a LocalCluster rejects what a cluster rejects.
// After a change of the table: go test ./accelerators -run TestPythonKnowsTheGPUTypes -update-tpu-types
func TestPythonKnowsTheGPUTypes(t *testing.T) {
	var lines strings.Builder
	for _, is := range GPUTypes() {
		fmt.Fprintf(&lines, "%s %d\n", is.Name, is.Memory)
	}
	path := filepath.Join("..", "python", "src", "fray", "cluster", "gpu_types.txt")
	if *writeTPUTypes {
		if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != lines.String() {
		t.Errorf("%s differs from the table of accelerators (%v): write it with -update-tpu-types", path, err)
	}
}
