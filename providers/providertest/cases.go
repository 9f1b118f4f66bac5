package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

func createListDelete(s *suite) {
	if inventory := s.inventory(stackA); len(inventory.Slices) != 0 {
		s.t.Fatalf("an empty place lists %v", inventory.Slices)
	}
	spec := s.spec(stackA, "one")
	s.create(spec)
	status, ok := s.find(stackA, "one")
	if !ok {
		s.t.Fatal("a slice whose creation was accepted is not listed")
	}
	if status.CreatedAt.IsZero() {
		s.t.Error("it has no time of creation")
	}
	s.awaitReady(spec)
	status, _ = s.find(stackA, "one")
	if diff := cmp.Diff(spec, status.Spec, cmp.Comparer(func(a, b schema.Address) bool { return a == b })); diff != "" {
		s.t.Errorf("listed spec (-want +got):\n%s", diff)
	}
	s.delete(stackA, "one")
	s.awaitGone(stackA, "one")
	// A name is free again once its slice is gone.
	s.create(spec)
	s.awaitReady(spec)
}

func createTwiceAdopts(s *suite) {
	spec := s.spec(stackA, "one")
	s.create(spec)
	s.awaitReady(spec)
	before, _ := s.find(stackA, "one")
	s.create(spec)
	if err := s.Reopen().Create(s.t.Context(), spec); err != nil {
		s.t.Errorf("create through another handle: %v", err)
	}
	after, _ := s.find(stackA, "one")
	if !after.CreatedAt.Equal(before.CreatedAt) || after.Phase != schema.SliceReady {
		s.t.Errorf("slice was %+v, is %+v", before, after)
	}
}

func otherSpecConflicts(s *suite) {
	spec := s.spec(stackA, "one")
	s.create(spec)
	other := spec
	other.Hosts++
	s.wantKind(s.Provider.Create(s.t.Context(), other), schema.ErrorConflict)
	foreign := s.spec(stackB, "one")
	s.wantKind(s.Provider.Create(s.t.Context(), foreign), schema.ErrorConflict)
	if status, ok := s.find(stackA, "one"); !ok || status.Spec != spec {
		s.t.Errorf("the slice is now %+v", status)
	}
}

func onlyOwnMark(s *suite) {
	mine, theirs := s.spec(stackA, "mine"), s.spec(stackB, "theirs")
	s.create(mine)
	s.create(theirs)
	s.awaitReady(theirs)
	inventory := s.inventory(stackA)
	if len(inventory.Slices) != 1 || inventory.Slices[0].Spec.Name != "mine" {
		s.t.Errorf("inventory of %s is %+v", stackA, inventory.Slices)
	}
	claimed := theirs
	claimed.Stack = stackA
	err := s.Provider.Delete(s.t.Context(), claimed)
	if err == nil {
		s.t.Fatal("another stack's slice was deleted")
	}
	s.wantKind(err, schema.ErrorPermission)
	if status, ok := s.find(stackB, "theirs"); !ok || status.Phase != schema.SliceReady {
		s.t.Errorf("the other stack's slice is now %+v", status)
	}
}

func deleteTwice(s *suite) {
	spec := s.spec(stackA, "one")
	s.create(spec)
	s.awaitReady(spec)
	s.delete(stackA, "one")
	s.delete(stackA, "one")
	s.awaitGone(stackA, "one")
	s.delete(stackA, "one")
	s.delete(stackA, "never-was")
}

func deletingIsListed(s *suite) {
	spec := s.spec(stackA, "one")
	s.create(spec)
	s.awaitReady(spec)
	s.delete(stackA, "one")
	s.await("the slice to go, listed as deleting until then", func() bool {
		status, ok := s.find(stackA, "one")
		if ok && status.Phase != schema.SliceDeleting {
			s.t.Fatalf("a slice that is being deleted is %s", status.Phase)
		}
		return !ok
	})
	s.awaitGone(stackA, "one")
}

func concurrentCreates(s *suite) {
	spec := s.spec(stackA, "one")
	errs := make([]error, 32)
	var group sync.WaitGroup
	for i := range errs {
		p := s.Provider
		if i%2 == 1 {
			p = s.Reopen()
		}
		group.Go(func() { errs[i] = p.Create(s.t.Context(), spec) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	s.awaitReady(spec)
	if inventory := s.inventory(stackA); len(inventory.Slices) != 1 {
		s.t.Errorf("there are %d slices", len(inventory.Slices))
	}
}

func manySlices(s *suite) {
	var names []string
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		spec := s.spec(stackA, fmt.Sprintf("many-%d", i))
		spec.Index = i
		names = append(names, spec.Name)
		group.Go(func() { errs[i] = s.Provider.Create(s.t.Context(), spec) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, each := range s.inventory(stackA).Slices {
		got = append(got, each.Spec.Name)
	}
	if !slices.Equal(got, names) {
		s.t.Errorf("inventory lists %v, want %v in this order", got, names)
	}
}

func killedHost(s *suite) {
	if s.KillHost == nil {
		s.t.Skip("this provider's hosts cannot be killed")
	}
	spec := s.spec(stackA, "one")
	s.create(spec)
	s.awaitReady(spec)
	s.KillHost("one", 1)
	s.await("the dead host to show", func() bool {
		status, ok := s.find(stackA, "one")
		if !ok {
			s.t.Fatal("a slice with a dead host is not listed")
		}
		return slices.Equal(status.Down, []int{1})
	})
	s.create(spec)
	s.awaitReady(spec)
}

func crashedCreate(s *suite) {
	if s.CrashCreate == nil {
		s.t.Skip("this provider's creations cannot be crashed")
	}
	spec := s.spec(stackA, "one")
	s.CrashCreate(spec)
	// Whether or not the slice is there, asking again makes it whole.
	s.inventory(stackA)
	s.create(spec)
	s.awaitReady(spec)
	other := s.spec(stackA, "two")
	s.CrashCreate(other)
	s.await("what the crash left to be gone or listed", func() bool {
		_, ok := s.find(stackA, "two")
		return ok || len(s.Left("two")) == 0
	})
	s.delete(stackA, "two")
	s.awaitGone(stackA, "two")
}

func unreadable(s *suite) {
	if s.Damage == nil {
		s.t.Skip("this provider's slices cannot be damaged")
	}
	spec := s.spec(stackA, "one")
	s.create(spec)
	s.awaitReady(spec)
	s.delete(stackA, "one")
	s.awaitGone(stackA, "one")
	s.Damage("one")
	inventory, err := s.Provider.Inventory(s.t.Context(), stackA)
	switch {
	case err != nil:
		s.wantKind(err, schema.ErrorUnavailable)
	case !slices.ContainsFunc(inventory.Skipped, func(i schema.SkippedItem) bool {
		return i.Name == "one" && i.Reason == schema.SkipUnreadable && i.Text != ""
	}):
		s.t.Fatalf("a place that cannot be read was listed as %+v", inventory)
	}
	if status, found, err := s.Provider.Get(s.t.Context(), spec); err == nil {
		s.t.Fatalf("a slice that cannot be read was read as %+v, found %v", status, found)
	}
}

// getReadsOne wants a direct read to say of a slice what a list says, and that there is
// none only where there is none.
func getReadsOne(s *suite) {
	spec := s.spec(stackA, "one")
	read := func(spec schema.SliceSpec) (schema.SliceStatus, bool) {
		s.t.Helper()
		status, found, err := s.Provider.Get(s.t.Context(), spec)
		if err != nil {
			s.t.Fatalf("get %s: %v", spec.Name, err)
		}
		return status, found
	}
	if status, found := read(spec); found {
		s.t.Errorf("what was never made was found: %+v", status)
	}
	s.create(spec)
	s.awaitReady(spec)
	listed, _ := s.find(stackA, "one")
	if status, found := read(spec); !found || status.Spec != spec || status.Phase != listed.Phase || !status.CreatedAt.Equal(listed.CreatedAt) {
		s.t.Errorf("it was read as %+v, %v, and is listed as %+v", status, found, listed)
	}
	if status, found, err := s.Reopen().Get(s.t.Context(), spec); err != nil || !found || status.Phase != schema.SliceReady {
		s.t.Errorf("through another handle it was read as %+v, %v, %v", status, found, err)
	}
	theirs := spec
	theirs.Stack = stackB
	if status, found := read(theirs); found {
		s.t.Errorf("another stack's slice was found: %+v", status)
	}
	ended, cancel := context.WithCancel(s.t.Context())
	cancel()
	if status, found, err := s.Provider.Get(ended, spec); err == nil && !found {
		s.t.Errorf("a read that was cut short says that there is no slice: %+v", status)
	}
	s.delete(stackA, "one")
	s.await("the slice to go, read as deleting until then", func() bool {
		s.find(stackA, "one") // deletions of several parts go on with each list
		status, found, err := s.Provider.Get(s.t.Context(), spec)
		if providers.KindOf(err) == schema.ErrorRate && err != nil { // it is asked too often here
			return false
		}
		if err != nil {
			s.t.Fatalf("get %s: %v", spec.Name, err)
		}
		if found && status.Phase != schema.SliceDeleting {
			s.t.Fatalf("a slice that is being deleted was read as %s", status.Phase)
		}
		return !found
	})
	s.awaitGone(stackA, "one")
}

func invalid(s *suite) {
	for _, spec := range []schema.SliceSpec{
		{},
		func() schema.SliceSpec { x := s.spec(stackA, "../evil"); return x }(),
		func() schema.SliceSpec { x := s.spec(stackA, "one"); x.Hosts = 0; return x }(),
		func() schema.SliceSpec { x := s.spec("", "one"); return x }(),
	} {
		s.wantKind(s.Provider.Create(s.t.Context(), spec), schema.ErrorInvalid)
	}
	if inventory := s.inventory(stackA); len(inventory.Slices) != 0 {
		s.t.Errorf("a refused slice is listed: %+v", inventory.Slices)
	}
}
