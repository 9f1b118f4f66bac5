package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

const (
	processes  = 8
	increments = 25
	victims    = 3
)

func TestDirIncrementsOfManyProcesses(t *testing.T) {
	d := newDir(t)
	var wg sync.WaitGroup
	for range processes {
		cmd := player(t, "increment", d.Location())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("incrementing process: %v", err)
			}
		})
	}
	wg.Wait()
	object, err := d.Get(t.Context(), "counter.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := strconv.Itoa(processes * increments); string(object.Data) != want {
		t.Errorf("got %s, want %s", object.Data, want)
	}
}

// victim is the object that a numbered write is of; every third is the state.
func victim(n int) string {
	if n%victims == 0 {
		return store.StateKey
	}
	return fmt.Sprintf("hosts/v/%d.json", n%victims)
}

// numbered is content that tells its number and whether it is whole.
func numbered(n int) []byte {
	return fmt.Appendf(nil, "%d %s %d", n, strings.Repeat("x", 1+(n*7919)%100_000), n)
}

// A writer that is killed at any moment leaves every object whole, none older
// than what it was told is written, and no lock behind.
func TestDirSurvivesKilledWriters(t *testing.T) {
	d := newDir(t)
	acked := map[string]int{}
	next := 0
	for round := range 20 {
		next = killWriter(t, d, acked, killing{start: next, after: 1 + round*7%23})
		for key, n := range acked {
			object, err := d.Get(t.Context(), key)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			got := numberOf(t, object)
			if got < n {
				t.Fatalf("round %d: %s has number %d, although %d was written", round, key, got, n)
			}
			if _, err := d.Put(t.Context(), key, object.Data, object.Generation); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		list, err := d.List(t.Context(), "")
		if err != nil || len(list) > victims {
			t.Fatalf("round %d: list: got %v, %v, want at most %d objects", round, list, err, victims)
		}
		wantWholeVersions(t, d)
	}
}

// numberOf is the number in content that must be whole.
func numberOf(t *testing.T, object store.Object) int {
	t.Helper()
	number, _, _ := bytes.Cut(object.Data, []byte(" "))
	n, err := strconv.Atoi(string(number))
	if err != nil || !bytes.Equal(object.Data, numbered(n)) {
		t.Fatalf("%s is torn: %.40q", object.Key, object.Data)
	}
	return n
}

// wantWholeVersions wants the versions of the state to be whole and in the
// order in which they were written.
func wantWholeVersions(t *testing.T, d *store.Dir) {
	t.Helper()
	versions, err := d.Versions(t.Context(), store.StateKey)
	if errors.Is(err, store.ErrNotFound) {
		return // killed before its first write
	}
	if err != nil || len(versions) > 22 {
		t.Fatalf("got %d versions, %v, want at most 22", len(versions), err)
	}
	last := math.MaxInt
	for _, v := range versions {
		object, err := d.GetVersion(t.Context(), store.StateKey, v.Generation)
		if err != nil {
			t.Fatal(err)
		}
		n := numberOf(t, object)
		if n > last {
			t.Fatalf("version %d has number %d, after %d", v.Generation, n, last)
		}
		last = n
	}
}

type killing struct{ start, after int }

// killWriter kills a writer while it goes on after some writes, notes what it
// had been told by then, and returns a number that it cannot have reached.
func killWriter(t *testing.T, d *store.Dir, acked map[string]int, k killing) int {
	t.Helper()
	cmd := player(t, "write", d.Location(), strconv.Itoa(k.start))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := k.start
	for lines, seen := bufio.NewScanner(out), 0; lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			break // the last line, cut off
		}
		acked[victim(n)], last = n, n
		if seen++; seen == k.after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	wasKilled(t, cmd)
	return last + 2
}

func wasKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended by itself: %v", err)
	}
}

// holder starts a process that holds the lease, and returns once it does, with
// what it prints after that.
func holder(t *testing.T, d *store.Dir, ttl time.Duration) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := player(t, "hold", d.Location(), ttl.String())
	stdin, err := cmd.StdinPipe() // kept open: its end ends the holder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the holder said %q: %v", line, err)
	}
	return cmd, lines
}

// A process that is stopped for longer than its lease must know when it wakes.
func TestLeaseOfAStoppedProcessIsLostToIt(t *testing.T) {
	d := newDir(t)
	cmd, lines := holder(t, d, 500*time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, d, store.LeaseConfig{Wait: time.Minute})
	if held.Epoch() != 2 {
		t.Errorf("epoch: got %d, want 2", held.Epoch())
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	line, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, store.ErrLeaseLost.Error()) {
		t.Errorf("the one who was stopped said %q, %v, want that it lost the lease", line, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if err := held.Valid(); err != nil {
		t.Error(err)
	}
	release(t, held)
}

func TestDirOfASuspendedHolder(t *testing.T) {
	d := newDir(t)
	storetest.RunSuspended(t, d, player(t, "be suspended", d.Location()))
}

func TestLeaseOfAKilledProcessIsTakenOverAtOnce(t *testing.T) {
	d := newDir(t)
	for want := uint64(2); want <= 6; want += 2 {
		cmd, _ := holder(t, d, ttl)
		var refused *store.HeldError
		if _, err := store.Acquire(t.Context(), d, store.LeaseConfig{}); !errors.As(err, &refused) {
			t.Fatalf("while its holder lives: got %v, want a HeldError", err)
		}
		if refused.Lease.PID != cmd.Process.Pid {
			t.Errorf("the error names pid %d, want %d", refused.Lease.PID, cmd.Process.Pid)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wasKilled(t, cmd)
		held := acquire(t, d, store.LeaseConfig{})
		if held.Epoch() != want {
			t.Errorf("epoch: got %d, want %d", held.Epoch(), want)
		}
		release(t, held)
	}
}

func TestLeaseOfAStoppedProcessIsNotTakenForDead(t *testing.T) {
	d := newDir(t)
	cmd, _ := holder(t, d, ttl)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var refused *store.HeldError
	if _, err := store.Acquire(t.Context(), d, store.LeaseConfig{}); !errors.As(err, &refused) {
		t.Errorf("got %v, want a HeldError", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wasKilled(t, cmd)
}

// Another machine may have the same host name; only its kernel tells.
func TestLeaseOfAnotherMachineIsNotTakenForDead(t *testing.T) {
	d := newDir(t)
	cmd, _ := holder(t, d, ttl)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wasKilled(t, cmd)
	object, err := d.Get(t.Context(), store.LeaseKey)
	if err != nil {
		t.Fatal(err)
	}
	l := readLease(t, d)
	l.BootID = "elsewhere"
	elsewhere, err := store.EncodeIndented(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Put(t.Context(), store.LeaseKey, elsewhere, object.Generation); err != nil {
		t.Fatal(err)
	}
	var refused *store.HeldError
	if _, err := store.Acquire(t.Context(), d, store.LeaseConfig{}); !errors.As(err, &refused) {
		t.Errorf("got %v, want a HeldError", err)
	}
}

// Where a store has no witness, as a bucket, it is the process's number that shows
// that a holder of this machine has ended.
func TestLeaseOfAnEndedProcessIsTakenAtOnceWithoutAWitness(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*store.Lease)
		held   bool
	}{
		{"its process has ended", func(*store.Lease) {}, false},
		{"it lives", func(l *store.Lease) { l.PID = os.Getpid() }, true},
		{"it is of another boot of this machine, or of another machine", func(l *store.Lease) { l.BootID = "elsewhere" }, true},
		{"its numbers mean something else here", func(l *store.Lease) { l.PIDNamespace = "elsewhere" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := storetest.NewMemory()
			if _, err := store.Acquire(t.Context(), s, store.LeaseConfig{TTL: time.Hour, Command: "first"}); err != nil {
				t.Fatal(err)
			}
			l := readLease(t, s)
			l.PID = ended.Process.Pid
			test.change(&l)
			data, err := store.EncodeIndented(l)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), store.LeaseKey, data, store.Any); err != nil {
				t.Fatal(err)
			}
			next, err := store.Acquire(t.Context(), s, store.LeaseConfig{Command: "next"})
			var refused *store.HeldError
			if errors.As(err, &refused) != test.held {
				t.Fatalf("got %v, want that it is held: %v", err, test.held)
			}
			if !test.held && (err != nil || next.Epoch() != 2) {
				t.Errorf("got %v, want epoch 2", err)
			}
		})
	}
}
