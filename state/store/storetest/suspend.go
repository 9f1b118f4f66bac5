package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// suspendTTL is the lease's in the test of a suspended holder.
const suspendTTL = 3 * time.Second

// RunSuspended tests that a holder which is stopped past its lease can do
// nothing when it wakes. holder starts a process, with pipes unset, that opens
// the same store and calls [BeSuspended].
func RunSuspended(t *testing.T, s store.Store, holder *exec.Cmd) {
	stdin, err := holder.StdinPipe() // kept open: its end ends the holder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	if line, err := output.ReadString('\n'); err != nil || line != holdsIt {
		t.Fatalf("the holder output %q: %v", line, err)
	}
	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, s, store.LeaseConfig{Command: "the next", Wait: time.Minute})
	if next.Epoch() != 2 {
		t.Errorf("epoch: got %d, want 2", next.Epoch())
	}
	object, err := s.Get(t.Context(), store.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, store.StateKey, "the next's", object.Generation)
	if err := holder.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var found awakening
	if err := json.NewDecoder(output).Decode(&found); err != nil {
		t.Fatalf("what the holder found: %v", err)
	}
	if err := holder.Wait(); err != nil {
		t.Error(err)
	}
	if !found.Invalid || !found.Conflict || !found.Lost {
		t.Errorf("the holder woke up to %+v, want all three", found)
	}
	if got := read(t, s, store.StateKey); got != "the next's" {
		t.Errorf("state: got %q, want the next's", got)
	}
	if err := next.Valid(); err != nil {
		t.Errorf("the next holder: %v", err)
	}
}

// awakening is what a suspended holder finds when it wakes.
type awakening struct {
	Invalid  bool // its first question: Valid is an ErrLeaseLost
	Conflict bool // a write of the state, as it knew it, is rejected
	Lost     bool // the cause of its context's end is an ErrLeaseLost
	Errors   []string
}

const holdsIt = "holds it\n"

// BeSuspended holds the lease of a new store until it finds that this process
// was stopped past it, and writes to out what it then found. It ends early
// when in does.
func BeSuspended(ctx context.Context, s store.Store, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	held, err := store.Acquire(ctx, s, store.LeaseConfig{TTL: suspendTTL})
	if err != nil {
		return err
	}
	gen, err := s.Put(ctx, store.StateKey, []byte("the first's"), store.Absent)
	if err != nil {
		return err
	}
	awake := time.Now()
	if _, err := io.WriteString(out, holdsIt); err != nil { // from here on it may be stopped
		return err
	}
	invalid, err := firstAfterWaking(ctx, held, awake)
	if err != nil {
		return err
	}
	_, conflict := s.Put(ctx, store.StateKey, []byte("the first's, too late"), gen)
	<-held.Context().Done()
	lost := context.Cause(held.Context())
	found := awakening{
		Invalid: errors.Is(invalid, store.ErrLeaseLost), Conflict: errors.Is(conflict, store.ErrConflict), Lost: errors.Is(lost, store.ErrLeaseLost),
	}
	for _, err := range []error{invalid, conflict, lost} {
		found.Errors = append(found.Errors, fmt.Sprint(err))
	}
	return errors.Join(json.NewEncoder(out).Encode(found), held.Release(ctx))
}

// firstAfterWaking asks all the time whether the lease is valid, and returns
// the first answer that is an error, or that was asked for after a pause in
// which the lease must have been lost.
func firstAfterWaking(ctx context.Context, held *store.Held, last time.Time) (answer, err error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		asked := time.Now()
		answer := held.Valid()
		switch {
		case asked.Sub(last) >= suspendTTL:
			return answer, nil
		case answer != nil && time.Since(last) >= suspendTTL/2:
			return answer, nil // its last renewal was before the pause
		case answer != nil:
			return nil, fmt.Errorf("lost without having been stopped: %w", answer)
		}
		last = asked
	}
}
