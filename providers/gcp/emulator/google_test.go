package emulator_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
)

// Google's own clients for Python use the emulator.
func TestGoogleClients(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../../python/.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(python); err != nil {
		t.Skip("there is no environment for Python: run scripts/python-env first")
	}
	buckets, err := storage.New(storage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e := emulator.New(emulator.Config{Cloud: cloud.Config{Clock: cloud.Faster(1000)}, Storage: buckets})
	if err := e.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	output, err := exec.CommandContext(t.Context(), python, "testdata/google_clients.py", e.URL()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
