package accelerators

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestEnvironmentIsThatOfGKE compares with what the TPU device plugin of Google
// Kubernetes Engine sets for each type that its tests name.
func TestEnvironmentIsThatOfGKE(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/gke-environment.txt")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(f) != 8 {
			continue
		}
		checked++
		want := map[string]string{
			"TPU_SKIP_MDS_QUERY": "true", "TPU_ACCELERATOR_TYPE": f[0], "TPU_TOPOLOGY": f[1], "TPU_HOST_BOUNDS": f[2],
			"TPU_CHIPS_PER_HOST_BOUNDS": f[3], "TPU_TOPOLOGY_WRAP": f[4], "TPU_TOPOLOGY_ALT": f[5], "TPU_RUNTIME_METRICS_PORTS": f[7],
		}
		if f[6] != "-" {
			want["ENABLE_ICI_RESILIENCY"] = f[6]
		}
		shape, err := Parse(f[0])
		if err != nil {
			t.Errorf("%s: %v", f[0], err)
			continue
		}
		if diff := gocmp.Diff(want, shape.Environment()); diff != "" {
			t.Errorf("%s (-GKE's +ours):\n%s", f[0], diff)
		}
	}
	if checked != 28 {
		t.Errorf("compared %d types, want 28", checked)
	}
}

// TestEnvironmentOfEveryType: the bounds of hosts and of their chips make up the
// topology, and ICI resiliency is set from 4x4x4 on of v4, v5p and TPU7x only.
func TestEnvironmentOfEveryType(t *testing.T) {
	t.Parallel()
	types := 0
	for _, g := range generations() {
		for _, size := range g.validSizes() {
			types++
			shape, err := Parse(fmt.Sprintf("%s-%d", g.name, size))
			if err != nil {
				t.Fatal(err)
			}
			env := shape.Environment()
			topology := numbers(t, env["TPU_TOPOLOGY"], "x")
			hosts, chips := numbers(t, env["TPU_HOST_BOUNDS"], ","), numbers(t, env["TPU_CHIPS_PER_HOST_BOUNDS"], ",")
			for i := range 3 {
				if hosts[i]*chips[i] != topology[i] {
					t.Errorf("%s: hosts %v of chips %v, topology %v", shape.Type, hosts, chips, topology)
				}
			}
			if n := hosts[0] * hosts[1] * hosts[2]; n != shape.Hosts {
				t.Errorf("%s has %d hosts, its bounds %d", shape.Type, shape.Hosts, n)
			}
			cubes := topology[0]%4 == 0 && topology[1]%4 == 0 && topology[2]%4 == 0
			if _, set := env["ENABLE_ICI_RESILIENCY"]; set != cubes {
				t.Errorf("%s: ICI resiliency is set: %v, want %v", shape.Type, set, cubes)
			}
		}
	}
	if types < 100 {
		t.Errorf("compared %d types only", types)
	}
}

// numbers reads "4x4" or "2,2,1"; a third dimension that is missing is 1.
func numbers(t *testing.T, text, separator string) [3]int {
	t.Helper()
	found := [3]int{}
	for i, part := range strings.Split(text, separator) {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		found[i] = n
	}
	found[2] = cmp.Or(found[2], 1)
	return found
}
