package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// TestStatusOfASilentController: status shows what the store says of a stack whose
// controller is stopped, killed, or at an address where packets vanish, and that
// it does not answer.
func TestStatusOfASilentController(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, dir, sleeper)
	do(t, dir, "apply", "--auto-approve")
	watch := exec.CommandContext(t.Context(), fray, "watch", "--http", "off")
	watch.Dir = dir
	watch.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	const kept, silent, unwatched = " keeps it true since ", " does not answer at ", "No controller watches this stack"
	says := func(words ...string) {
		t.Helper()
		if err := within(proofPatience, func() error { return statusSays(t, dir, words) }); err != nil {
			t.Error(err)
		}
	}
	says("job.one", kept)
	if err := watch.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	says("job.one", silent, "What is shown is from the store.")
	if err := watch.Process.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	says("job.one", kept)
	if err := watch.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = watch.Wait() // it was killed
	says("job.one", silent, unwatched)
	heldElsewhere(t, dir, "127.0.0.1:1")
	says("job.one", silent, "fray watch", " on elsewhere)")
	t.Run("packets vanish", func(t *testing.T) {
		heldElsewhere(t, dir, vanishing(t))
		says("job.one", silent, "fray watch", " on elsewhere)")
	})
	do(t, dir, "destroy", "--auto-approve")
}

func statusSays(t *testing.T, dir string, words []string) error {
	t.Helper()
	out, errs, code := frayIn(t, dir, "status")
	for _, word := range words {
		if code != 0 || !strings.Contains(out, word) {
			return fmt.Errorf("status ended with %d and says\n%s%s\nwant %q in it", code, out, errs, word)
		}
	}
	return nil
}

// heldElsewhere has the lease of a stack be one that a controller on another machine
// held a minute ago.
func heldElsewhere(t *testing.T, dir, address string) {
	t.Helper()
	s, err := store.OpenDir(filepath.Join(dir, ".fray"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := store.ReadLease(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	l.Host, l.BootID, l.ControllerAddress = "elsewhere", "another", address
	l.RenewedAt, l.ExpiresAt = time.Now().Add(-time.Minute), time.Now().Add(-45*time.Second)
	writeLease(t, s, l)
}

// vanishing is an address to which packets vanish. Where no networks can be made,
// the test is skipped.
func vanishing(t *testing.T) string {
	t.Helper()
	const number = 5
	n := newNetwork(t, number)
	inner := strings.TrimSuffix(n.api, "1") + "2"
	shell(t, "ip", "neigh", "replace", inner, "lladdr", "02:00:00:00:00:01", // no machine's
		"dev", fmt.Sprintf("fo%dx%d", os.Getpid(), 2*number+1), "nud", "permanent")
	return net.JoinHostPort(inner, "1")
}

func writeLease(t *testing.T, s store.Store, l store.Lease) {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.LeaseKey, data, store.Any); err != nil {
		t.Fatal(err)
	}
}
