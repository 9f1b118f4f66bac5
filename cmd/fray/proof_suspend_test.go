package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// suspendConfig has work that begins only after job.early has ended.
const suspendConfig = `
job "early" {
  command = ["sh", "-c", "echo early >> %[1]s"]
}
job "late" {
  count      = 4
  command    = ["sh", "-c", "echo late-$0 >> %[1]s; exec sleep 1000", count.index]
  depends_on = [job.early]
}
`

// suspendMore adds what another apply adds meanwhile.
const suspendMore = suspendConfig + `
job "other" {
  command = ["sh", "-c", "echo other >> %[1]s; exec sleep 1000"]
}
`

// TestSuspended stops an apply with SIGSTOP in the middle of its work until its
// lease has lapsed and another apply has changed the stack. When it wakes up it
// makes no provider call, begins no write, and says who has its lease.
func TestSuspended(t *testing.T) {
	for _, c := range []struct {
		name string
		// at is the request in the middle of which it is stopped; ended says
		// that job.early has reported its end.
		at func(r *http.Request, ended bool) bool
		// late is what comes of that request once it wakes up.
		late func(*emulator, http.ResponseWriter, *http.Request)
		// interrupted: the user has pressed Ctrl-C before.
		interrupted bool
	}{
		{"while it looks, before it creates", func(r *http.Request, ended bool) bool {
			return ended && isLook(r)
		}, (*emulator).serve, false},
		{"while it saves what was asked for, and has to try again", func(r *http.Request, _ bool) bool {
			return isPut(r, store.StateKey)
		}, (*emulator).refuse, false},
		{"while it assigns, and has to try again", func(r *http.Request, _ bool) bool {
			return isUnder(r, store.AssignPrefix)
		}, (*emulator).refuse, false},
		{"while it assigns after a Ctrl-C, and has to try again", func(r *http.Request, _ bool) bool {
			return isUnder(r, store.AssignPrefix)
		}, (*emulator).refuse, true},
		{"while it saves, and has to try again", func(r *http.Request, ended bool) bool {
			return ended && isPut(r, store.StateKey)
		}, (*emulator).refuse, false},
		{"while it saves, and that arrives late", func(r *http.Request, ended bool) bool {
			return ended && isPut(r, store.StateKey)
		}, (*emulator).serve, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // mostly waiting for a lease to lapse
			bucket := newEmulator(t)
			s := newProofStack(t, bucket)
			s.program = withCrashPoints(t)
			door := newDoor(t, bucket, c.at, c.late)
			proveSuspended(t, s, door, c.interrupted)
		})
	}
}

func proveSuspended(t *testing.T, s *proofStack, door *door, interrupted bool) {
	starts := filepath.Join(s.dir, "starts")
	s.write(t, fmt.Sprintf(suspendConfig, starts))
	first := s.command(t, []string{
		"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(door.URL, "http://"),
		"FRAY_TEST_LEASE_TTL=6s", "FRAY_TEST_CRASH_LOG=" + filepath.Join(s.dir, "points.log"),
	}, "apply", "--auto-approve", "--parallelism=1")
	left := s.suspend(t, first, door, interrupted)
	s.write(t, fmt.Sprintf(suspendMore, starts))
	other := s.command(t, nil, "apply", "--auto-approve", "--target=job.other", "--lease-timeout=5m")
	if got, err := endingOf(other); err != nil || got.code != 0 {
		t.Fatalf("the apply that takes over: %v: %v", err, got)
	}
	passed, err := s.lines("points.log")
	if err != nil {
		t.Fatal(err)
	}
	before := s.generations(t)
	door.awake.Store(true)
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	close(door.wake)
	<-left
	if got := first.ProcessState.ExitCode(); got != terminal.ExitError {
		t.Errorf("the first apply ended with %d, want %d", got, terminal.ExitError)
	}
	who := fmt.Sprintf("(pid %d, fray apply) has taken it over with epoch 2", other.Process.Pid)
	for _, want := range []string{"lease lost", who} {
		if got := s.said(t); !strings.Contains(got, want) {
			t.Errorf("the first apply does not say %q:\n%s", want, got)
		}
	}
	showUntouched(t, s, door, passed, before)
	s.must(t, "apply", "--auto-approve")
	want := []string{"early", "late-0", "late-1", "late-2", "late-3", "other"}
	if err := within(proofPatience, func() error {
		if got := startsOf(t, s); !slices.Equal(got, want) {
			return fmt.Errorf("started were %q, want each once: %q", got, want)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	s.must(t, "plan", "--detailed-exitcode")
}

// suspend starts a command and stops it, maybe after a Ctrl-C, once it has come
// to the door. What it returns is closed when the command has ended.
func (s *proofStack) suspend(t *testing.T, first *exec.Cmd, door *door, interrupted bool) <-chan struct{} {
	t.Helper()
	said, err := os.Create(filepath.Join(s.dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	first.Stderr = said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = first.Wait() // its exit code is looked at
	}()
	select {
	case <-door.reached:
	case <-left:
		t.Fatalf("the apply ended before it could be stopped:\n%s", s.said(t))
	}
	if interrupted {
		if err := interruptProcess(first.Process.Pid, func() bool { return strings.Contains(s.said(t), "Interrupted") }); err != nil {
			t.Fatal(err)
		}
	}
	if err := stopProcess(first.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return left
}

// showUntouched shows that a process has made no call and written nothing since
// it had passed some points and the bucket had some generations.
func showUntouched(t *testing.T, s *proofStack, door *door, passed []string, before map[string]store.Generation) {
	t.Helper()
	now, err := s.lines("points.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range now[len(passed):] {
		if strings.Contains(point, " before ") && !toStore(point) {
			t.Errorf("after its wake-up it came to %q", point)
		}
	}
	if got := door.written(t); len(got) > 0 {
		t.Errorf("after its wake-up it wrote %q", got)
	}
	for key, gen := range s.generations(t) {
		if before[key] != gen && !strings.HasPrefix(key, firstEvents) {
			t.Errorf("%s had generation %d, and %d after the first apply was awake up", key, before[key], gen)
		}
	}
}

// firstEvents begin the keys of the events of the first leader, which no other one writes. They are written
// beside the state, so that it may have begun to send some when it is stopped in another write.
const firstEvents = store.EventsPrefix + "000000000001-"

// toStore reports whether a crash point is a call of the store. A process that is stopped just before
// such a call begins it when it wakes up, with a context that ends: the door sees what is sent.
func toStore(point string) bool {
	return strings.Contains(point, " before put ") || strings.Contains(point, " before delete ") || strings.Contains(point, " before upload ")
}

// generations are those of the stack's objects that only leaders write.
func (s *proofStack) generations(t *testing.T) map[string]store.Generation {
	t.Helper()
	st, err := s.store(t)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]store.Generation{}
	listed, err := st.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range listed {
		if !byAgents(each.Key) {
			found[each.Key] = each.Generation
		}
	}
	return found
}

func byAgents(key string) bool {
	return strings.HasPrefix(key, store.HostsPrefix) || strings.HasPrefix(key, "logs/")
}

// said is what the suspended process has written to standard error.
func (s *proofStack) said(t *testing.T) string {
	t.Helper()
	lines, err := s.lines("said")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// interruptProcess sends a process a Ctrl-C and returns once it was heard.
func interruptProcess(pid int, heard func() bool) error {
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		return err
	}
	return within(proofPatience, func() error {
		if !heard() {
			return errors.New("the process does not hear a Ctrl-C")
		}
		return nil
	})
}

// stopProcess returns once a process is suspended.
func stopProcess(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	return within(proofPatience, func() error {
		if letter(pid) != 'T' {
			return errors.New("the process is not stopped")
		}
		return nil
	})
}

// door is an entrance of the emulator for one process (and the agents that it
// starts), which knows what came through.
type door struct {
	*httptest.Server
	bucket *emulator
	at     func(r *http.Request, ended bool) bool
	late   func(*emulator, http.ResponseWriter, *http.Request)

	reached chan struct{} // closed when a request has come that is kept waiting
	wake    chan struct{} // closed when it goes on
	once    sync.Once
	awake   atomic.Bool // no more is kept waiting, and writes are noted

	// turn is held alone by the report that a task has ended: a request that came in
	// before it does not see it, one that comes after it does.
	turn  sync.RWMutex
	ended bool

	mu     sync.Mutex
	came   bool     // some request was kept waiting, or has come since the wake-up
	writes []string // since the wake-up
}

func newDoor(t *testing.T, bucket *emulator, at func(*http.Request, bool) bool, late func(*emulator, http.ResponseWriter, *http.Request)) *door {
	d := &door{bucket: bucket, at: at, late: late, reached: make(chan struct{}), wake: make(chan struct{})}
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
	})
	return d
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case d.awake.Load():
		d.note(r)
		d.bucket.ServeHTTP(w, r)
	case isUnder(r, store.HostsPrefix) && bytes.Contains(uploaded(r), []byte(`"succeeded"`)):
		d.turn.Lock()
		defer d.turn.Unlock()
		d.bucket.ServeHTTP(w, r)
		d.ended = true
	case d.pass(w, r):
	default:
		d.once.Do(func() { close(d.reached) })
		d.mu.Lock()
		d.came = true
		d.mu.Unlock()
		select {
		case <-d.wake:
		case <-r.Context().Done():
		}
		d.late(d.bucket, w, r)
	}
}

// pass serves a request unless it is one that is kept waiting.
func (d *door) pass(w http.ResponseWriter, r *http.Request) bool {
	d.turn.RLock()
	defer d.turn.RUnlock()
	if d.at(r, d.ended) {
		return false
	}
	d.bucket.ServeHTTP(w, r)
	return true
}

func (d *door) note(r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.came = true
	name := r.URL.Query().Get("name")
	if r.Method == http.MethodGet || isUnder(r, store.HostsPrefix) || isUnder(r, "logs/") {
		return
	}
	d.writes = append(d.writes, r.Method+" "+name+r.URL.Path)
}

// written is what was written since the wake-up. Where no request came at all that shows nothing.
func (d *door) written(t *testing.T) []string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.came {
		t.Error("no request came through the door: that nothing was written there proves nothing")
	}
	return slices.Clone(d.writes)
}

// isLook reports whether a request is an apply's look into the mailbox. Agents list
// too, when they open the store and when they ship logs: what keeps one of theirs
// waiting is no apply that is kept from creating, and an agent that is.
func isLook(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/o") &&
		strings.HasSuffix(r.URL.Query().Get("startOffset"), "/"+store.AssignPrefix)
}

// isUnder reports whether a request writes an object under a prefix.
func isUnder(r *http.Request, prefix string) bool {
	return r.URL.Query().Get("uploadType") != "" && strings.Contains(r.URL.Query().Get("name"), "/"+prefix)
}

// serve is what happens to a request when nothing goes wrong.
func (e *emulator) serve(w http.ResponseWriter, r *http.Request) {
	e.service.HTTPHandler().ServeHTTP(w, r)
}
