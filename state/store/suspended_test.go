package store_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// counter is incremented by processes that are suspended in the middle of it.
const counter = "counter.json"

// A process that is suspended in the middle of a write blocks no other process, and
// overwrites nothing when it goes on: no increment is lost or counted twice.
func TestDirOfWritersSuspendedInTheMiddle(t *testing.T) {
	const rounds, writers, ours = 10, 3, 5
	d := newDir(t)
	want := 0
	var all []*counting
	for range writers {
		all = append(all, startCounting(t, d))
	}
	for round := range rounds {
		for _, c := range all {
			c.next(t)
			c.suspendInAWrite(t, d)
		}
		for range ours {
			if err := storetest.Increment(t.Context(), d, counter); err != nil {
				t.Fatalf("round %d, with suspended writers: %v", round, err)
			}
			want++
		}
		if err := d.Upload(t.Context(), "logs/"+strconv.Itoa(round), strings.NewReader("x")); err != nil {
			t.Fatalf("round %d, upload: %v", round, err)
		}
		if err := d.Delete(t.Context(), "logs/"+strconv.Itoa(round)); err != nil {
			t.Fatalf("round %d, delete: %v", round, err)
		}
		for _, c := range all {
			c.signal(t, syscall.SIGCONT)
		}
	}
	for _, c := range all {
		want += c.end(t)
	}
	object, err := d.Get(t.Context(), counter)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(object.Data); got != strconv.Itoa(want) {
		t.Errorf("got %s, want %d", got, want)
	}
	if files := staged(t, d); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// counting is a process that increments the counter until its input ends, and
// says so after each.
type counting struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  *bufio.Reader
	times int // it is known to have done so
}

func startCounting(t *testing.T, d *store.Dir) *counting {
	t.Helper()
	c := &counting{cmd: player(t, "count", d.Location())}
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.said = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// next waits for an increment that it has not yet been seen to make.
func (c *counting) next(t *testing.T) {
	t.Helper()
	if _, err := c.said.ReadString('\n'); err != nil {
		t.Fatalf("the counting process: %v", err)
	}
	c.times++
}

func (c *counting) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// suspendInAWrite suspends the process at a moment when a lock is held.
func (c *counting) suspendInAWrite(t *testing.T, d *store.Dir) {
	t.Helper()
	for {
		c.signal(t, syscall.SIGSTOP)
		var status unix.WaitStatus
		if _, err := unix.Wait4(c.cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("the counting process: got status %#x, %v, want it stopped", status, err)
		}
		if isLocked(t, d) {
			return
		}
		c.signal(t, syscall.SIGCONT)
	}
}

// end lets the process end, and returns how often it incremented the counter.
func (c *counting) end(t *testing.T) int {
	t.Helper()
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.said)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return c.times + strings.Count(string(rest), "\n")
}

// isLocked reports whether a process has a lock of the store.
func isLocked(t *testing.T, d *store.Dir) bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(d.Location(), ".locks", "[0-9][0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return false
}
