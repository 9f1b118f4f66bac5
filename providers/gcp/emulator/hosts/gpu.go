package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// driverDir has the programs of NVIDIA's driver, in a machine's directory.
const driverDir = "driver"

// hasDriver reports whether the machine has GPUs and boots from an image with their
// driver, which the name of the image states.
func (m *machine) hasDriver() bool {
	return m.spec.GPUs > 0 && strings.Contains(m.spec.BootImage, "nvidia")
}

// installDriver puts in place what programs find of a driver: an nvidia-smi that lists the
// machine's GPUs.
func (m *machine) installDriver() error {
	if !m.hasDriver() {
		return nil
	}
	var listed strings.Builder
	for i := range m.spec.GPUs {
		fmt.Fprintf(&listed, "GPU %d: Emulated NVIDIA GPU of %s (UUID: GPU-%s-%d)\n", i, m.spec.MachineType, m.spec.ID, i)
	}
	dir := filepath.Join(m.dir, driverDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("install driver: %w", err)
	}
	program := "#!/bin/sh\ncat <<'GPUS'\n" + listed.String() + "GPUS\n"
	if err := writeProgram(filepath.Join(dir, "nvidia-smi"), program); err != nil {
		return fmt.Errorf("install driver: %w", err)
	}
	return nil
}
