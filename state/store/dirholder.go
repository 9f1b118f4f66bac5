package store

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/filelock"
)

// holderPrefix begins the name of the file that a lease holder of this machine keeps locked.
const holderPrefix = "holder-"

func (d tree) holderPath(holder string) string {
	return filepath.Join(d.locks(), holderPrefix+holder)
}

// holderOf is the holder that a file in lockFolder speaks for.
func holderOf(file string) (string, bool) {
	holder, ok := strings.CutPrefix(file, holderPrefix)
	_, err := hex.DecodeString(holder)
	return holder, ok && err == nil && holder != ""
}

// Attest locks a file for as long as the holder's process lives: the kernel
// frees the lock when it dies, however it dies.
func (d *Dir) Attest(holder string) (end func(), err error) {
	if _, ok := holderOf(holderPrefix + holder); !ok {
		return nil, fmt.Errorf("attest holder %q: want hex digits", holder)
	}
	if err := d.prepare(); err != nil {
		return nil, fmt.Errorf("attest holder: %w", err)
	}
	f, err := os.OpenFile(d.holderPath(holder), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, fmt.Errorf("attest holder: %w", fileError("lock", d.holderPath(holder), err))
	}
	if err := filelock.TryOpen(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("attest holder: %w", fileError("lock", f.Name(), err))
	}
	return func() { _ = f.Close() }, nil
}

// Ended reports whether the lock of a holder that once attested is free.
// A holder without a file never attested here, or is long gone: not proven.
func (d *Dir) Ended(holder string) bool { return d.ended(holder) }

func (d tree) ended(holder string) bool {
	if _, ok := holderOf(holderPrefix + holder); !ok {
		return false
	}
	f, err := os.OpenFile(d.holderPath(holder), os.O_RDWR, fileMode)
	if err != nil {
		return false
	}
	defer f.Close()
	held, err := filelock.IsHeldOpen(f)
	return err == nil && !held
}

// Forget removes what an ended holder left.
func (d *Dir) Forget(holder string) {
	if d.Ended(holder) {
		_ = os.Remove(d.holderPath(holder))
	}
}
