// Package providertest is the conformance suite that every provider passes. It
// holds what plan and apply rely on: creating twice is adopting, a listing is
// whole or an error, nothing of another stack is touched, and what was deleted
// is listed until it is gone.
//
// It starts no processes itself; a [Harness] says how to. Start with [Run].
package providertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// Harness is a provider with an empty place to make slices in, and what the
// suite must be able to do to that place. Optional capabilities may be nil.
type Harness struct {
	Provider providers.Provider
	// Reopen returns another handle on the same place, as another process has.
	Reopen func() providers.Provider
	// Spec is a small valid slice of two hosts; the suite changes its
	// Name, Stack, Owner and Index.
	Spec schema.SliceSpec
	// Reported counts the hosts of a slice whose agents have reported in.
	Reported func(ctx context.Context, slice string) int
	// Left lists what is still there of a slice that is gone, for people;
	// empty when nothing is.
	Left func(slice string) []string

	// KillHost ends one host without a word. Optional.
	KillHost func(slice string, host int)
	// CrashCreate leaves a slice as a Create that died early does. Optional.
	CrashCreate func(spec schema.SliceSpec)
	// Damage makes it impossible to read what has a slice's name, for good. Optional.
	Damage func(slice string)
	// Patience bounds every wait; 0: 30 s.
	Patience time.Duration
}

const (
	stackA = "stack-a"
	stackB = "stack-b"
)

// Run runs the suite; harness is called once for every test.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"CreateListDelete", createListDelete},
		{"CreateTwiceAdopts", createTwiceAdopts},
		{"OtherSpecConflicts", otherSpecConflicts},
		{"OnlyOwnMark", onlyOwnMark},
		{"DeleteTwice", deleteTwice},
		{"DeletingIsListedUntilGone", deletingIsListed},
		{"ConcurrentCreatesMakeOne", concurrentCreates},
		{"ManySlices", manySlices},
		{"KilledHostIsRepaired", killedHost},
		{"CrashedCreateRecovers", crashedCreate},
		{"UnreadableIsAnErrorOrSkipped", unreadable},
		{"GetReadsOne", getReadsOne},
		{"InvalidIsRefused", invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := harness(t)
			if h.Patience == 0 {
				h.Patience = 30 * time.Second
			}
			s := &suite{Harness: h, t: t}
			t.Cleanup(s.deleteAll)
			test.run(s)
		})
	}
}

type suite struct {
	Harness
	t *testing.T
}

func (s *suite) spec(stack, name string) schema.SliceSpec {
	spec := s.Spec
	spec.Stack, spec.Name = stack, name
	spec.Owner = schema.Address{Kind: schema.KindJob, Name: "j"}
	return spec
}

func (s *suite) create(spec schema.SliceSpec) {
	s.t.Helper()
	if err := s.Provider.Create(s.t.Context(), spec); err != nil {
		s.t.Fatalf("create %s: %v", spec.Name, err)
	}
}

func (s *suite) delete(stack, name string) {
	s.t.Helper()
	if err := s.Provider.Delete(s.t.Context(), s.spec(stack, name)); err != nil {
		s.t.Fatalf("delete %s: %v", name, err)
	}
}

func (s *suite) inventory(stack string) schema.Inventory {
	s.t.Helper()
	inventory, err := s.Provider.Inventory(s.t.Context(), stack)
	if err != nil {
		s.t.Fatalf("inventory of %s: %v", stack, err)
	}
	return inventory
}

// find returns a slice's status, false when it is not listed.
func (s *suite) find(stack, name string) (schema.SliceStatus, bool) {
	s.t.Helper()
	inventory := s.inventory(stack)
	for _, each := range inventory.Slices {
		if each.Spec.Name == name {
			return each, true
		}
	}
	return schema.SliceStatus{}, false
}

// await polls until a condition holds.
func (s *suite) await(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(s.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			s.t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func (s *suite) awaitReady(spec schema.SliceSpec) {
	s.t.Helper()
	s.await(spec.Name+" to be ready", func() bool {
		status, ok := s.find(spec.Stack, spec.Name)
		return ok && status.Phase == schema.SliceReady && len(status.Down) == 0
	})
	s.await("all hosts of "+spec.Name+" to report in", func() bool {
		return s.Reported(s.t.Context(), spec.Name) == spec.Hosts
	})
}

func (s *suite) awaitGone(stack, name string) {
	s.t.Helper()
	s.await(name+" to be gone", func() bool {
		_, ok := s.find(stack, name)
		return !ok
	})
	if left := s.Left(name); len(left) > 0 {
		s.t.Errorf("%s is gone but left %v", name, left)
	}
}

// deleteAll leaves nothing behind whatever a test did.
func (s *suite) deleteAll() {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	for _, stack := range []string{stackA, stackB} {
		for {
			inventory, err := s.Provider.Inventory(ctx, stack)
			if err != nil || len(inventory.Slices) == 0 {
				break
			}
			for _, each := range inventory.Slices {
				if err := s.Provider.Delete(ctx, each.Spec); err != nil {
					s.t.Errorf("clean up: %v", err)
				}
			}
			select {
			case <-ctx.Done():
				s.t.Errorf("clean up: %d slices of %s are left", len(inventory.Slices), stack)
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func (s *suite) wantKind(err error, want schema.ErrorKind) {
	s.t.Helper()
	var classified *providers.Error
	if !errors.As(err, &classified) {
		s.t.Fatalf("error is %v, want a providers.Error", err)
	}
	if classified.Kind != want {
		s.t.Errorf("error %v has kind %s, want %s", err, classified.Kind, want)
	}
}
