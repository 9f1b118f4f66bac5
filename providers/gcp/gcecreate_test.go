package gcp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

func TestComputeRejections(t *testing.T) {
	for _, test := range []struct {
		name string
		spec schema.SliceSpec
		want string
	}{
		{"a queue", gcetest.Spec("one", func(s *schema.SliceSpec) { s.Cloud.Provisioning = schema.ProvisioningQueued }), "flex-start"},
		{"flex-start for ever", gcetest.Spec("one", func(s *schema.SliceSpec) { s.Cloud.Provisioning = schema.ProvisioningFlexStart }), "max_run"},
		{"hosts that a TPU has not", gcetest.Spec("many", gcetest.OfTPU("v6e-16", 3)), "4 hosts, not 3"},
		{"a machine that is too large", gcetest.Spec("one", func(s *schema.SliceSpec) { s.CPU = 1000 }), "machine_type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newComputeService(t)
			err := s.provider(t, time.Now).Create(t.Context(), test.spec)
			if providers.KindOf(err) != schema.ErrorInvalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an invalid one that says %q", err, test.want)
			}
			if left := s.left(); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

func TestComputeLateErrorIsReturnedOnce(t *testing.T) {
	for _, test := range []struct {
		code string
		kind schema.ErrorKind
	}{
		{"ZONE_RESOURCE_POOL_EXHAUSTED", schema.ErrorCapacity},
		{"QUOTA_EXCEEDED", schema.ErrorQuota},
		{"UNSUPPORTED_OPERATION", schema.ErrorPreempted},
	} {
		t.Run(test.code, func(t *testing.T) {
			s := newComputeService(t)
			s.slow["instances.insert"] = true
			p := s.provider(t, time.Now)
			spec := gcetest.Spec("one", gcetest.Spot)
			if err := p.Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if status := inventoryOf(t, p)["one"]; status.Phase != schema.SliceCreating {
				t.Errorf("what is coming is %s", status.Phase)
			}
			s.do(func() { // it comes and goes
				clear(s.instances)
				for _, op := range s.operations {
					op.Status, op.Error = computepb.Operation_DONE.Enum(), failedWith(test.code, "the words")
				}
			})
			if _, listed := inventoryOf(t, p)["one"]; listed {
				t.Error("what is gone is listed")
			}
			err := p.Create(t.Context(), spec)
			if providers.KindOf(err) != test.kind || !strings.Contains(err.Error(), "the words") {
				t.Errorf("got %v, want kind %s", err, test.kind)
			}
			if n := s.counts("instances.insert"); n != 1 {
				t.Errorf("it was asked for %d times", n)
			}
			if err := p.Create(t.Context(), spec); err != nil || s.counts("instances.insert") != 2 {
				t.Errorf("asked again: %v, %d requests in all", err, s.counts("instances.insert"))
			}
		})
	}
}

func TestComputeOpenOperationIsAskedForOncePerCreate(t *testing.T) {
	s := newComputeService(t)
	s.slow["instances.insert"] = true
	p := s.provider(t, time.Now)
	if err := p.Create(t.Context(), gcetest.Spec("one")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := p.Create(t.Context(), gcetest.Spec("one")); err != nil {
			t.Errorf("while it goes on: %v", err)
		}
	}
	if inserts, polls := s.counts("instances.insert"), s.counts("operations.get"); inserts != 1 || polls != 3 {
		t.Errorf("%d requests and %d polls, want 1 and 3", inserts, polls)
	}
}

func TestComputeGroupFailsAtAnyStage(t *testing.T) {
	for _, method := range []string{"templates.insert", "policies.insert", "groups.insert", "resizes.insert"} {
		for _, late := range []bool{false, true} {
			t.Run(method+map[bool]string{true: " late"}[late], func(t *testing.T) {
				s := newComputeService(t)
				p := s.provider(t, time.Now)
				spec := gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4), gcetest.FlexStart)
				s.slow[method] = late
				s.reject = func(called string) *computeFail {
					if called == method && !late {
						return &computeFail{403, "quotaExceeded", "Quota 'X' exceeded.  Limit: 0.0 in region us-west4."}
					}
					return nil
				}
				err := p.Create(t.Context(), spec)
				if late {
					if err != nil {
						t.Fatal(err)
					}
					s.do(func() {
						for _, op := range s.operations {
							if op.GetStatus() != computepb.Operation_DONE {
								op.Status, op.Error = computepb.Operation_DONE.Enum(), failedWith("QUOTA_EXCEEDED", "Quota 'X' exceeded.")
							}
						}
						switch method { // what has failed is not there
						case "templates.insert":
							clear(s.templates)
						case "policies.insert":
							clear(s.policies)
						case "groups.insert":
							clear(s.groups)
						case "resizes.insert":
							s.resizes["us-west4-a/many"].State = new("FAILED")
						}
					})
					if _, listed := inventoryOf(t, p)["many"]; listed && method != "resizes.insert" {
						t.Error("it is listed, so that its state would not be asked for")
					}
					err = p.Create(t.Context(), spec)
				}
				if providers.KindOf(err) != schema.ErrorQuota {
					t.Errorf("got %v, want one of quota", err)
				}
				status, listed := inventoryOf(t, p)["many"]
				if nothing := len(s.left()) == 0; listed == nothing {
					t.Errorf("there is %v, and it is listed: %t", s.left(), listed)
				}
				if listed && method != "resizes.insert" && (status.Phase != schema.SliceDead || status.Cause != schema.ErrorQuota) {
					t.Errorf("what is left of it is %s, cause %q: %s", status.Phase, status.Cause, status.Reason)
				}
				discard(t, s, p, spec)
			})
		}
	}
}

func TestComputeConflicts(t *testing.T) {
	for _, test := range []struct {
		name  string
		there schema.SliceSpec
		asked schema.SliceSpec
	}{
		{"another stack's machine", gcetest.Spec("x", func(s *schema.SliceSpec) { s.Stack = "stack-b" }), gcetest.Spec("x")},
		{"a machine of another shape", gcetest.Spec("x", func(s *schema.SliceSpec) { s.CPU = 8 }), gcetest.Spec("x")},
		{"a group for a machine", gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4)), gcetest.Spec("x")},
		{"a machine for a group", gcetest.Spec("x"), gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4))},
		{"another stack's group", gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4), func(s *schema.SliceSpec) { s.Stack = "stack-b" }), gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4))},
		{"a group of another shape", gcetest.Spec("x", gcetest.OfTPU("v6e-32", 8)), gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4))},
		{"a group in another zone", gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4), inOtherZone), gcetest.Spec("x", gcetest.OfTPU("v6e-16", 4))},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newComputeService(t)
			if err := s.provider(t, time.Now).Create(t.Context(), test.there); err != nil {
				t.Fatal(err)
			}
			before := s.left()
			err := s.provider(t, time.Now).Create(t.Context(), test.asked)
			if providers.KindOf(err) != schema.ErrorConflict || err == nil {
				t.Errorf("got %v, want a conflict", err)
			}
			slices.Sort(before)
			after := s.left()
			slices.Sort(after)
			if !slices.Equal(before, after) {
				t.Errorf("there was %v and is %v", before, after)
			}
		})
	}
}

func TestComputeForeignGroupAndPolicyInTheWay(t *testing.T) {
	s := newComputeService(t)
	spec := gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4))
	s.policies["us-west4/many"] = &computepb.ResourcePolicy{Name: new("many"), Description: new("another's")}
	p := s.provider(t, time.Now)
	if err := p.Create(t.Context(), spec); providers.KindOf(err) != schema.ErrorConflict || err == nil {
		t.Errorf("with a policy in the way: %v", err)
	}
	s.do(func() {
		clear(s.policies)
		s.groups["us-west4-a/many"] = &computepb.InstanceGroupManager{
			Name: new("many"), Zone: new("zones/us-west4-a"), InstanceTemplate: new("projects/p/global/instanceTemplates/theirs"),
		}
	})
	if err := p.Create(t.Context(), spec); providers.KindOf(err) != schema.ErrorConflict || err == nil {
		t.Errorf("with a group in the way: %v", err)
	}
	for range 3 { // what was made for the slice goes, what was in the way stays
		if err := p.Delete(t.Context(), schema.SliceSpec{Stack: "stack-a", Name: "many"}); err != nil {
			t.Fatal(err)
		}
		inventoryOf(t, p)
	}
	if left := s.left(); len(left) != 1 || left[0] != "us-west4-a/many" || len(s.groups) != 1 {
		t.Errorf("there is %v, want the other group", left)
	}
}
