package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is too small for the parts, or for them and what is in them,
// says so; with room again what was fetched is used.
func TestFetchOntoAFullDisk(t *testing.T) {
	for name, size := range map[string]string{"while fetching": "size=100k", "while unpacking": "size=500k"} {
		t.Run(name, func(t *testing.T) {
			p, l := shipped(t)
			disk := t.TempDir()
			if err := unix.Mount("tmpfs", disk, "tmpfs", 0, size); err != nil {
				t.Skipf("this user may not mount: %v", err)
			}
			t.Cleanup(func() {
				if err := unix.Unmount(disk, 0); err != nil {
					t.Errorf("unmount: %v", err)
				}
			})
			fetch := func() (string, error) {
				to := filepath.Join(disk, "to")
				if err := os.Mkdir(to, 0o700); err != nil {
					t.Fatal(err)
				}
				err := Fetcher{Store: l, Keep: filepath.Join(disk, "keep")}.Fetch(t.Context(), p.Bundle.Sum, to)
				if err != nil {
					if err := os.RemoveAll(to); err != nil {
						t.Fatal(err)
					}
				}
				return to, err
			}
			_, err := fetch()
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free space on the file systems of "+disk) {
				t.Errorf("got %v, want no space on %s and what to do", err, disk)
			}
			before := len(l.made("open"))
			if err := unix.Mount("", disk, "", unix.MS_REMOUNT, "size=20m"); err != nil {
				t.Fatal(err)
			}
			to, err := fetch()
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, to, p.Dir)
			if after := len(l.made("open")); before == 0 || after >= len(p.Bundle.Parts) {
				t.Errorf("opened %d parts, then %d of %d, want fewer: some were there", before, after, len(p.Bundle.Parts))
			}
		})
	}
}
