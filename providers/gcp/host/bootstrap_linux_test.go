package host

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStartupScriptOnAFullDisk(t *testing.T) {
	noise := make([]byte, 100<<10)
	for i := range noise {
		noise[i] = "0123456789abcdef"[(i*i*31+i*7)%16]
	}
	r := bootRigWith(t, []byte(standIn+"# "+string(noise)+"\n"), bootAccount)
	if err := os.MkdirAll(r.root, 0o700); err != nil {
		t.Fatal(err)
	}
	err := unix.Mount("tmpfs", r.root, "tmpfs", 0, "size=64k")
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.powerOff()
		if err := unix.Unmount(r.root, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	output, err := r.boot()
	if err == nil {
		t.Error("the script is content with itself")
	}
	r.wantStatus("KiB free at "+r.root+"; the host needs a larger disk", output)
	if err := unix.Mount("tmpfs", r.root, "tmpfs", unix.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	r.mustBoot()
}
