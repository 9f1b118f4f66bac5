package examples

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/ray/raytest"
)

// onRay points an example at a Ray cluster.
func (s *stack) onRay(c *raytest.Cluster) {
	s.t.Helper()
	block := "provider \"ray\" {\n  address    = " + strconv.Quote(c.URL) + "\n  token_file = " + strconv.Quote(c.Token) + "\n}\n"
	path := filepath.Join(s.dir, s.file)
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, block...), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// TestTrainingOnRay trains over the two nodes of a simulated v4-16 of a real Ray cluster.
func TestTrainingOnRay(t *testing.T) {
	long(t)
	host := func(n int, more map[string]float64) raytest.Node {
		resources := map[string]float64{"TPU": 4}
		maps.Copy(resources, more)
		return raytest.Node{CPUs: 4, Resources: resources, Labels: map[string]string{
			"ray.io/tpu-slice-name": "slice-a", "ray.io/tpu-worker-id": strconv.Itoa(n), "ray.io/tpu-pod-type": "v4-16",
		}}
	}
	c := raytest.Start(t, python(t), host(1, nil), host(0, map[string]float64{"TPU-v4-16-head": 1}))
	s := newStack(t, "training.hcl")
	s.wait = 15 * time.Minute // beside the cluster's own processes
	s.onRay(c)
	t.Cleanup(s.end) // while there is a cluster to ask
	s.applyToEnd("--var", "tpu=v4-16")
	var result struct {
		Accuracy  float64 `json:"accuracy"`
		Processes int     `json:"processes"`
		Steps     int     `json:"steps"`
	}
	decode(t, s.read("out/training/result.json"), &result)
	if result.Accuracy < 0.88 || result.Accuracy > 1 || result.Processes != 2 || result.Steps != 120 {
		t.Errorf("got %+v, want an accuracy of at least 0.88 after 120 steps of 2 processes", result)
	}
	s.destroy()
}

// python is an interpreter with ray[default], which scripts/test-engines names; without one the test skips.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("FRAY_TEST_RAY_PYTHON")
	if name == "" {
		t.Skip("set FRAY_TEST_RAY_PYTHON to a Python interpreter with ray[default] to run this on a real Ray cluster, as scripts/test-engines does")
	}
	return name
}

// long skips a test that takes minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FRAY_TEST_RAY_LONG") == "" {
		t.Skip("set FRAY_TEST_RAY_LONG=1 to run this: it takes minutes")
	}
}
