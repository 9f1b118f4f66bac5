package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// TestRecordedDigests: specs that a fray before GPUs and alternatives recorded have the digests that it recorded,
// so that an upgrade of fray replaces no job, reservation or slice.
func TestRecordedDigests(t *testing.T) {
	for name, test := range map[string]struct {
		spec any
		text string
		want schema.Digest
	}{
		"job": {&schema.Job{}, `{
			"addr": "job.train", "namespace": "default", "command": ["python", "train.py"],
			"resources": {"provider": "gcp", "tpu": "v5litepod-16", "slices": 2, "preemptible": true, "zones": ["us-west4-a"],
				"ports": [{"name": "http", "number": 8080}], "cloud": {"runtime_version": "v2-alpha-tpuv5-lite"}},
			"environment": {"env": {"A": "1"}}, "retries": {"preemption": 100, "failure": 3}, "stop_grace": "30s"}`,
			"v1:30847da1a83d4d57a99da6f45180cff234dcb7efc546812a73be4795ac1f4c72"},
		"reservation": {&schema.Reservation{}, `{
			"addr": "reservation.pool", "provider": "local", "min": {"cpu": 2, "memory": 1073741824, "slices": 1}, "max": {"cpu": 2, "memory": 1073741824, "slices": 4},
			"preemptible": false}`,
			"v1:dfd765d6125d285460f75d1aca13b3e9c31bb4853ba48118185c60e25f68c80c"},
		"provider": {&schema.Provider{}, `{"name": "gcp", "project": "project-a", "zones": ["us-west4-a"]}`,
			"v1:4ae21ac28bef0b039d737ce56477449ac7c8a00109852267a4cd1155a43ff91f"},
		"slice": {&schema.SliceSpec{}, `{
			"name": "train-0", "stack": "s", "owner": "job.train", "index": 0, "provider": "gcp", "tpu": "v5litepod-16", "zone": "us-west4-a",
			"preemptible": true, "hosts": 4}`,
			"v1:4e1688d068387b970efaea0a189166b4ab9dcb2601a9c019f7e0f4f04c432544"},
	} {
		if err := json.Unmarshal([]byte(test.text), test.spec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := schema.DigestOf(test.spec); err != nil || got != test.want {
			t.Errorf("the digest of the %s is %s, %v; recorded was %s", name, got, err, test.want)
		}
	}
}
