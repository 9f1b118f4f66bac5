package gcp

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

// settle updates and lists until the slice is recorded as what it is to be.
func settle(t *testing.T, p *Provider, spec schema.SliceSpec) {
	t.Helper()
	for range 20 {
		if inventoryOf(t, p)[spec.Name].Spec == spec {
			return
		}
		if err := p.Update(t.Context(), spec); err != nil {
			t.Fatalf("update: %v", err)
		}
	}
	t.Fatalf("it is still recorded as %+v", inventoryOf(t, p)[spec.Name].Spec.Cloud.Live)
}

func TestComputeUpdateInPlace(t *testing.T) {
	old := schema.CloudLive{Labels: "gone=1,kept=1", Tags: "gone,kept"}
	for name, spec := range map[string]schema.SliceSpec{
		"one machine": gcetest.Spec("one"), "group": gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4)),
	} {
		t.Run(name, func(t *testing.T) {
			s := newComputeService(t)
			p := s.provider(t, time.Now)
			spec.Cloud.Live = old
			carry(t, p, spec)
			if spec.Hosts > 1 {
				s.fill(spec, "RUNNING")
			}
			s.do(func() {
				for _, i := range s.instances { // what others did
					i.Labels["theirs"], i.Tags.Items = "1", append(i.Tags.Items, "theirs")
				}
				s.calls = nil
			})
			next := spec
			next.Cloud.Live = schema.CloudLive{Labels: "kept=2,new=1", Tags: "kept,new", InternalIPs: true}
			settle(t, p, next)
			labels := map[string]string{"fray-stack": "stack-a", "fray-slice": spec.Name, "theirs": "1", "kept": "2", "new": "1"}
			for key, i := range s.instances {
				if !maps.Equal(i.GetLabels(), labels) {
					t.Errorf("labels of %s are %v, want %v", key, i.GetLabels(), labels)
				}
				if tags := []string{"kept", "theirs", "new"}; !slices.Equal(i.GetTags().GetItems(), tags) {
					t.Errorf("tags of %s are %v, want %v", key, i.GetTags().GetItems(), tags)
				}
				if access := i.GetNetworkInterfaces()[0].GetAccessConfigs(); len(access) > 0 {
					t.Errorf("%s has the external address %v", key, access)
				}
			}
			calls := len(s.calls)
			if err := p.Update(t.Context(), next); err != nil {
				t.Error(err)
			}
			for _, each := range s.calls[calls:] {
				if !slices.Contains([]string{"instances.get", "instances.members", "groups.get", "templates.get", "operations.get"}, each) {
					t.Errorf("an update to what it is makes the call %s", each)
				}
			}
			next.Cloud.Live.InternalIPs = false
			settle(t, s.provider(t, time.Now), next)
			for key, i := range s.instances {
				if access := i.GetNetworkInterfaces()[0].GetAccessConfigs(); len(access) != 1 {
					t.Errorf("%s has the external addresses %v, want one", key, access)
				}
			}
		})
	}
}

func TestComputeUpdateCutShortAnywhereIsFinishedByTheNext(t *testing.T) {
	for name, spec := range map[string]schema.SliceSpec{
		"one machine": gcetest.Spec("one"), "group": gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4)),
	} {
		t.Run(name, func(t *testing.T) {
			everyFailure(t, func(t *testing.T, f failure) bool {
				s := newComputeService(t)
				first := s.provider(t, time.Now)
				carry(t, first, spec)
				if spec.Hosts > 1 {
					s.fill(spec, "RUNNING")
				}
				next := spec
				next.Cloud.Live = schema.CloudLive{Labels: "new=1", Tags: "new", InternalIPs: true}
				hit := f.arm(s)
				for range 10 {
					_ = first.Update(t.Context(), next)
				}
				s.disarm()
				settle(t, s.provider(t, time.Now), next)
				return hit()
			})
		})
	}
}

func TestComputeUpdateRejections(t *testing.T) {
	s := newComputeService(t)
	p := s.provider(t, time.Now)
	carry(t, p, gcetest.Spec("one"))
	carry(t, p, gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4)))
	for _, test := range []struct {
		name string
		spec schema.SliceSpec
		kind schema.ErrorKind
	}{
		{"another shape", gcetest.Spec("one", func(s *schema.SliceSpec) { s.CPU = 8 }), schema.ErrorConflict},
		{"another shape of a group", gcetest.Spec("many", gcetest.OfTPU("v5p-32", 4)), schema.ErrorConflict},
		{"another stack's", gcetest.Spec("one", func(s *schema.SliceSpec) { s.Stack = "stack-b" }), schema.ErrorPermission},
		{"another stack's group", gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4), func(s *schema.SliceSpec) { s.Stack = "stack-b" }), schema.ErrorPermission},
		{"nothing", gcetest.Spec("none"), schema.ErrorUnavailable},
		{"no group", gcetest.Spec("none", gcetest.OfTPU("v6e-16", 4)), schema.ErrorUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := p.Update(t.Context(), test.spec); providers.KindOf(err) != test.kind || err == nil {
				t.Errorf("got %v, want kind %s", err, test.kind)
			}
		})
	}
}
