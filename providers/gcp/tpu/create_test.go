package tpu

import (
	"testing"

	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/schema"
)

func TestRuntimeVersions(t *testing.T) {
	for kind, want := range map[string]string{
		"v6e-4":       "v2-alpha-tpuv6e",
		"v5p-8":       "v2-alpha-tpuv5",
		"v5litepod-4": "v2-alpha-tpuv5-lite",
		"v4-8":        "tpu-ubuntu2204-base",
		"v3-8":        "tpu-ubuntu2204-base",
		"v2-8":        "tpu-ubuntu2204-base",
	} {
		n, err := (&Engine{project: "acme"}).node(engine.Order{Spec: schema.SliceSpec{Name: "one", Zone: "us-west4-a", TPU: kind}})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.GetRuntimeVersion(); got != want {
			t.Errorf("that of %s is %q, want %q", kind, got, want)
		}
	}
}
