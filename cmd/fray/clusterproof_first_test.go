package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

const firstConfig = `
job "first" {
  command = ["true"]
}
`

// TestFirstWatchAndApply starts the first watch and the first apply of a stack at
// once. Whichever of them creates its state, both know it by the same mark.
func TestFirstWatchAndApply(t *testing.T) {
	t.Parallel()
	rounds := 6
	if os.Getenv("FRAY_TEST_SOAK") != "" {
		rounds = 100
	}
	for i := range rounds {
		s := newProofStack(t, nil)
		s.write(t, firstConfig)
		watch := s.start(t)
		got, err := s.run(t, nil, "apply", "--auto-approve")
		if err != nil {
			t.Fatal(err)
		}
		if got.code != 0 || strings.Contains(got.stdout+got.stderr, "another stack") {
			t.Fatalf("the first apply of stack %d, with the first watch: %v", i, got)
		}
		s.end(t, watch)
	}
}

// start starts a watch beside what the test does.
func (s *proofStack) start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := s.command(t, nil, "watch", "--http", "off")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(t, cmd) })
	return cmd
}

// end ends it; what is left on the machine goes with the stack.
func (*proofStack) end(t *testing.T, watch *exec.Cmd) {
	t.Helper()
	if watch.ProcessState == nil {
		_ = watch.Process.Kill() // shown by Wait
		_ = watch.Wait()
	}
}

// TestFirstWatchBetween has a first watch begin to lead between what a first
// apply reads of the state and what it makes of that, at each of its reads.
func TestFirstWatchBetween(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprintf("read %d", n), func(t *testing.T) {
			t.Parallel()
			bucket := emulatorWith(t, false)
			s := newProofStack(t, bucket)
			s.write(t, firstConfig)
			cmd := s.command(t, nil, "apply", "--auto-approve")
			held := bucket.holdRead(n)
			type result struct {
				ending
				err error
			}
			ended := make(chan result, 1)
			go func() {
				got, err := endingOf(cmd)
				ended <- result{got, err}
			}()
			select {
			case <-held.came:
			case <-time.After(proofPatience):
				t.Fatal("the apply does not read the state so often")
			}
			s.start(t)
			s.awaitLease(t)
			close(held.goOn)
			got := <-ended
			if got.err != nil || got.code != 0 {
				t.Errorf("the first apply: %v, %v", got.ending, got.err)
			}
		})
	}
}

// awaitLease waits until a process holds the lease and serves by it, or is an
// apply, which serves nothing.
func (s *proofStack) awaitLease(t *testing.T) {
	t.Helper()
	st, err := s.store(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := within(proofPatience, func() error {
		lease, err := store.ReadLease(t.Context(), st)
		if err == nil && (lease.Released || lease.ControllerAddress == "" && lease.Command != "fray apply") {
			err = errors.New("no controller leads")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// heldRead is an answer that is kept back.
type heldRead struct{ came, goOn chan struct{} }

// holdRead holds the n-th answer to a read of the state, until the test
// releases it.
func (e *emulator) holdRead(n int) *heldRead {
	held := &heldRead{came: make(chan struct{}), goOn: make(chan struct{})}
	var mu sync.Mutex
	reads := 0
	between := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, store.StateKey) {
			return false
		}
		mu.Lock()
		reads++
		now := reads == n
		mu.Unlock()
		if !now {
			return false
		}
		answer := httptest.NewRecorder()
		e.service.HTTPHandler().ServeHTTP(answer, r)
		close(held.came)
		select {
		case <-held.goOn:
		case <-r.Context().Done():
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the reader may be gone
		return true
	}
	e.between.Store(&between)
	return held
}
