package accelerators

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var writeTPUTypes = flag.Bool("update-tpu-types", false, "write the table of TPU types that the Python package has")

// The Python package knows the same TPU types, so that a LocalCluster rejects what a cluster rejects.
// After a change of the table: go test ./schema -run TestPythonKnowsTheTPUTypes -update-tpu-types
func TestPythonKnowsTheTPUTypes(t *testing.T) {
	var lines strings.Builder
	for _, g := range generations() {
		for n := 1; n <= 1<<14; n++ {
			if topology, valid := g.topology(n); valid {
				a := g.shape(n, topology)
				fmt.Fprintf(&lines, "%s %d\n", a.Type, a.Hosts)
			}
		}
	}
	path := filepath.Join("..", "python", "src", "fray", "cluster", "tpu_types.txt")
	if *writeTPUTypes {
		if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != lines.String() {
		t.Errorf("%s differs from the table of schema (%v): write it with -update-tpu-types", path, err)
	}
}
