package gcp

import (
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

// hands is a clock that the test moves.
type hands struct{ at time.Time }

func (h *hands) now() time.Time { return h.at }

func TestComputeSliceIsListedUntilNothingIsLeft(t *testing.T) {
	s := newComputeService(t)
	p := s.provider(t, time.Now)
	spec := gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4))
	carry(t, p, spec)
	s.fill(spec, "RUNNING")
	s.do(func() {
		s.slow["groups.delete"], s.slow["policies.delete"], s.slow["templates.delete"] = true, true, true
	})
	if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "many"}); err != nil {
		t.Fatal(err)
	}
	wantDeleting := func(of string) {
		t.Helper()
		for range 2 {
			if status, listed := inventoryOf(t, p)["many"]; !listed || status.Phase != schema.SliceDeleting {
				t.Fatalf("while %s goes it is listed %t as %s: %s", of, listed, status.Phase, status.Reason)
			}
		}
	}
	wantDeleting("the group")
	if n := s.counts("policies.delete") + s.counts("templates.delete"); n > 0 {
		t.Errorf("what the group uses was deleted before it: %d calls", n)
	}
	before := len(s.operations)
	if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "many"}); err != nil || s.counts("groups.delete") != 2 || len(s.operations) != before {
		t.Errorf("deleted again: %v, %d calls, %d more operations; want the same operation", err, s.counts("groups.delete"), len(s.operations)-before)
	}
	s.do(func() { clear(s.groups); clear(s.instances) })
	wantDeleting("the policy")
	if n := s.counts("templates.delete"); n > 0 {
		t.Errorf("the template, by which it is found, was deleted before the policy: %d calls", n)
	}
	s.do(func() { clear(s.policies) })
	wantDeleting("the template")
	s.do(func() { clear(s.templates) })
	if status, listed := inventoryOf(t, p)["many"]; listed {
		t.Errorf("it is gone, and listed as %s", status.Phase)
	}
}

func TestComputeStuckDeletionIsAskedForAgain(t *testing.T) {
	for name, spec := range map[string]schema.SliceSpec{"one machine": gcetest.Spec("one"), "group": gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4))} {
		t.Run(name, func(t *testing.T) {
			s := newComputeService(t)
			clock := &hands{time.Now()}
			p := s.provider(t, clock.now)
			carry(t, p, spec)
			s.do(func() { s.slow["instances.delete"], s.slow["groups.delete"] = true, true })
			if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: spec.Name}); err != nil {
				t.Fatal(err)
			}
			clock.at = clock.at.Add(10*time.Minute + time.Second)
			if status := inventoryOf(t, p)[spec.Name]; status.Phase == schema.SliceDeleting || status.Phase == "" {
				t.Fatalf("a deletion that came to nothing is listed as %q", status.Phase)
			}
			s.do(func() { clear(s.slow) })
			discard(t, s, p, spec)
		})
	}
}

func TestComputeDeletionThatIsRejectedIsAnError(t *testing.T) {
	for name, spec := range map[string]schema.SliceSpec{"one machine": gcetest.Spec("one"), "group": gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4))} {
		t.Run(name, func(t *testing.T) {
			s := newComputeService(t)
			p := s.provider(t, time.Now)
			carry(t, p, spec)
			s.do(func() {
				s.reject = func(method string) *computeFail {
					if method == "instances.delete" || method == "groups.delete" {
						return &computeFail{403, "forbidden", "Required 'compute.instances.delete' permission"}
					}
					return nil
				}
			})
			if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: spec.Name}); providers.KindOf(err) != schema.ErrorPermission || err == nil {
				t.Errorf("got %v", err)
			}
			if status := inventoryOf(t, p)[spec.Name]; status.Phase == schema.SliceDeleting {
				t.Error("what was refused is listed as being deleted")
			}
		})
	}
}

func TestComputeNothingIsMadeWhileItsNameIsBeingDeleted(t *testing.T) {
	s := newComputeService(t)
	p := s.provider(t, time.Now)
	carry(t, p, gcetest.Spec("one"))
	s.do(func() { s.slow["instances.delete"] = true })
	if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Create(t.Context(), gcetest.Spec("one")); providers.KindOf(err) != schema.ErrorUnavailable || err == nil {
		t.Errorf("got %v, want one that passes", err)
	}
}

// A zone that cannot be listed says nothing of what was in another.
func TestComputeNameIsFreeThoughAnotherZoneIsUnlisted(t *testing.T) {
	for zone, free := range map[string]bool{"us-east1-d": true, "us-west4-a": false} {
		s := newComputeService(t)
		p := s.provider(t, time.Now)
		carry(t, p, gcetest.Spec("one"))
		if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "one"}); err != nil {
			t.Fatal(err)
		}
		s.do(func() { s.unreachable = []string{zone} })
		if listed := inventoryOf(t, p); len(listed) != 0 {
			t.Fatalf("listed %v, want nothing", listed)
		}
		if err := p.Create(t.Context(), gcetest.Spec("one")); (err == nil) != free {
			t.Errorf("%s is not listed: got %v, want that the name is free: %t", zone, err, free)
		}
	}
}

func TestComputeMachineThatIsPreemptedIsDeadUntilItIsDeleted(t *testing.T) {
	s := newComputeService(t)
	p := s.provider(t, time.Now)
	spec := gcetest.Spec("one", gcetest.Spot)
	carry(t, p, spec)
	for _, state := range []string{"STOPPING", "TERMINATED"} {
		s.do(func() {
			s.instances["us-west4-a/one"].Status, s.instances["us-west4-a/one"].StatusMessage = &state, new("Instance was preempted.")
		})
		if status := inventoryOf(t, p)["one"]; status.Phase != schema.SliceDead || status.Cause != schema.ErrorPreempted {
			t.Errorf("%s: it is %s, cause %q: %s", state, status.Phase, status.Cause, status.Reason)
		}
	}
	discard(t, s, p, spec)
}

func TestComputeGroupErrorsAreAskedForWithinBounds(t *testing.T) {
	s := newComputeService(t)
	clock := &hands{time.Now()}
	p := s.provider(t, clock.now)
	const looksAtOnce = 16 // of one inventory
	const groups = 3 * looksAtOnce
	var names []string
	for i := range groups {
		spec := gcetest.Spec("many-"+string(rune('a'+i/26))+string(rune('a'+i%26)), func(s *schema.SliceSpec) { s.Hosts = 2 })
		if err := p.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		names = append(names, spec.Name)
		s.errors["us-west4-a/"+spec.Name] = []*computepb.InstanceManagedByIgmError{
			{Timestamp: new("2026-01-02T03:04:05Z"), Error: &computepb.InstanceManagedByIgmErrorManagedInstanceError{Code: new("INTERNAL_ERROR"), Message: new("older")}},
			{Timestamp: new("2026-01-02T03:04:06Z"), Error: &computepb.InstanceManagedByIgmErrorManagedInstanceError{
				Code: new("ZONE_RESOURCE_POOL_EXHAUSTED"), Message: new("no more capacity"),
			}},
		}
	}
	for round := 1; round <= 3; round++ {
		all := inventoryOf(t, p)
		if n := s.counts("groups.errors"); n != round*looksAtOnce {
			t.Errorf("after %d inventories %d groups were asked, want %d", round, n, round*looksAtOnce)
		}
		dead := 0
		for _, name := range names {
			if all[name].Phase == schema.SliceDead && all[name].Cause == schema.ErrorCapacity {
				dead++
			}
		}
		if dead != round*looksAtOnce {
			t.Errorf("after %d inventories %d groups are known to be without capacity, want %d", round, dead, round*looksAtOnce)
		}
	}
	inventoryOf(t, p)
	if n := s.counts("groups.errors"); n != groups {
		t.Errorf("groups were asked again at once: %d calls", n)
	}
}
