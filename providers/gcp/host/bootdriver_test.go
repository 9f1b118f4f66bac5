package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/mark"
)

// driverImage is where the rig's machine boots from where it has GPUs.
const driverImage = "projects/acme/global/images/plain"

// nvidiaSMI is a directory with a stand-in for NVIDIA's program.
func nvidiaSMI(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStartupScriptChecksTheDriver: an agent starts on a machine with GPUs once programs
// can use them; before, the machine reports which image lacks a driver.
func TestStartupScriptChecksTheDriver(t *testing.T) {
	tools := append(usualTools(), "curl")
	for _, test := range []struct {
		name, script, want string
	}{
		{"no program", "", "failed: the boot image " + driverImage + " has no NVIDIA driver for the GPUs of this machine (it has no nvidia-smi); set boot_image to one that has"},
		{"no module", "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9", "(NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.)"},
		{"no GPU", ":", "(nvidia-smi lists no GPU)"},
		{"a driver", "echo 'GPU 0: NVIDIA L4 (UUID: GPU-1)'", "running"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newBootRig(t)
			r.meta.SetAttribute(mark.KeyDriverImage, driverImage)
			path := toolbox(t, tools...)
			if test.script != "" {
				path = nvidiaSMI(t, test.script) + ":" + path
			}
			output, err := r.boot("PATH=" + path)
			if fails := test.want != "running"; fails != (err != nil) {
				t.Fatalf("the script ended with %v\n%s", err, output)
			}
			r.wantStatus(test.want, output)
			if test.want == "running" {
				r.eventually("an agent", func() bool { return len(r.agents()) > 0 })
			} else if got := r.agents(); len(got) > 0 {
				t.Errorf("agents started without a driver: %q", got)
			}
		})
	}
}

// TestStartupScriptWithoutGPUs: a machine without GPUs needs no driver.
func TestStartupScriptWithoutGPUs(t *testing.T) {
	r := newBootRig(t)
	r.mustBoot("PATH=" + toolbox(t, append(usualTools(), "curl")...))
}
