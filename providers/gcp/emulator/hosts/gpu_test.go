package hosts

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDriver: programs of a machine with GPUs find a driver where its image has one.
func TestDriver(t *testing.T) {
	h := newHosts(t)
	for id, image := range map[string]string{"with": "projects/p/global/images/family/ubuntu-with-nvidia-580", "without": "projects/p/global/images/plain"} {
		m := scripted(id, `(nvidia-smi -L || echo none) >"$FRAY_ROOT/listed" 2>/dev/null; echo end >"$FRAY_ROOT/end"`)
		m.GPUs, m.BootImage, m.MachineType = 2, image, "g2-standard-24"
		h.Start(m)
		eventually(t, "the script", has(h, id, "end", "end"), console(h, id))
	}
	if !has(h, "with", "listed", "GPU 0: Emulated NVIDIA GPU of g2-standard-24 (UUID: GPU-with-0)\nGPU 1: ")() {
		t.Errorf("with a driver: want two GPUs; %s", console(h, "with")())
	}
	if _, err := os.Stat(filepath.Join(h.Disk("without"), driverDir)); err == nil {
		t.Error("without a driver: there is one")
	}
}
