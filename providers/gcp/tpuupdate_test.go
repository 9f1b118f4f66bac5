package gcp

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

func live(l schema.CloudLive) func(*schema.SliceSpec) {
	return func(spec *schema.SliceSpec) { spec.Cloud.Live = l }
}

// Exactly what differs is changed, and what others have put there stays.
func TestUpdate(t *testing.T) {
	was := schema.CloudLive{Labels: "a=1,b=2", Tags: "x,y"}
	for name, test := range map[string]struct {
		want   schema.CloudLive
		mask   []string
		labels map[string]string
		tags   []string
	}{
		"nothing": {want: was, labels: map[string]string{"a": "1", "b": "2"}, tags: []string{"x", "y", "theirs"}},
		"labels": {
			want: schema.CloudLive{Labels: "b=3,c=4", Tags: "x,y"}, mask: []string{"labels", "metadata"},
			labels: map[string]string{"b": "3", "c": "4"}, tags: []string{"x", "y", "theirs"},
		},
		"tags": {
			want: schema.CloudLive{Labels: "a=1,b=2", Tags: "y,z"}, mask: []string{"tags", "metadata"},
			labels: map[string]string{"a": "1", "b": "2"}, tags: []string{"y", "theirs", "z"},
		},
		"addresses": {
			want: schema.CloudLive{Labels: "a=1,b=2", Tags: "x,y", InternalIPs: true},
			mask: []string{"network_config.enable_external_ips", "metadata"}, labels: map[string]string{"a": "1", "b": "2"},
			tags: []string{"x", "y", "theirs"},
		},
		"all": {
			want: schema.CloudLive{InternalIPs: true},
			mask: []string{"labels", "tags", "network_config.enable_external_ips", "metadata"}, tags: []string{"theirs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			n := nodeOf(t, tpuSpec("one", live(was)))
			n.Labels["goog-theirs"] = "1"
			n.Tags = append(n.Tags, "theirs")
			n.Metadata["startup-script"] = "#!/bin/sh"
			s.setNode("one", n)
			p := s.provider(t)
			spec := tpuSpec("one", live(test.want))
			if err := p.Update(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			var mask []string
			for _, each := range s.requests {
				mask = each.(*tpuapi.UpdateNodeRequest).GetUpdateMask().GetPaths()
			}
			if !slices.Equal(mask, test.mask) || len(s.requests) > 1 {
				t.Errorf("the mask is %v, want %v", mask, test.mask)
			}
			labels := map[string]string{"fray-stack": "stack-a", "fray-slice": "one", "goog-theirs": "1"}
			maps.Copy(labels, test.labels)
			if diff := cmp.Diff(labels, n.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if !slices.Equal(n.GetTags(), test.tags) {
				t.Errorf("tags are %v, want %v", n.GetTags(), test.tags)
			}
			if got := n.GetNetworkConfig().GetEnableExternalIps(); got == test.want.InternalIPs {
				t.Errorf("external addresses: %v", got)
			}
			if n.GetMetadata()["startup-script"] == "" {
				t.Error("the startup script is gone")
			}
			inventory, err := p.Inventory(t.Context(), "stack-a")
			if err != nil || inventory.Slices[0].Spec != spec {
				t.Errorf("it is listed as %+v, %v, want %+v", inventory.Slices, err, spec)
			}
		})
	}
}

func TestUpdateIsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		there func(*tpuService)
		kind  schema.ErrorKind
		says  string
	}{
		"gone": {func(*tpuService) {}, schema.ErrorUnavailable, "not there"},
		"in the queue": {func(s *tpuService) {
			s.setQueued("one", queuedOf(t, tpuSpec("one")))
		}, schema.ErrorUnavailable, "waits in the queue"},
		"another stack's": {func(s *tpuService) { s.setNode("one", nodeOf(t, tpuSpec("one", stackB))) }, schema.ErrorPermission, "stack-b"},
		"another slice": {func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one", onDemand)))
		}, schema.ErrorConflict, "made otherwise"},
		"unreadable": {func(s *tpuService) {
			s.setNode("one", nodeOf(t, tpuSpec("one")))
			s.node("one").Metadata = nil
		}, schema.ErrorConflict, "fray-spec"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTPUService(t)
			test.there(s)
			err := s.provider(t).Update(t.Context(), tpuSpec("one", live(schema.CloudLive{Tags: "new"})))
			wantKind(t, err, test.kind, test.says)
			if len(s.requests) != 0 {
				t.Errorf("it was changed: %v", s.requests)
			}
		})
	}
}

// An update that goes on is asked about, and one that has failed late says so.
func TestUpdateThatFailsLate(t *testing.T) {
	s := newTPUService(t)
	n := nodeOf(t, tpuSpec("one"))
	s.setNode("one", n)
	p := s.provider(t)
	spec := tpuSpec("one", live(schema.CloudLive{Tags: "new"}))
	for range 2 {
		if err := p.Update(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.count("UpdateNode"); got != 1 {
		t.Errorf("it was asked for %d times", got)
	}
	s.do(func() { n.Tags, n.Metadata = nil, nodeOf(t, tpuSpec("one")).GetMetadata() })
	s.end(status.Error(codes.InvalidArgument, "bad tag"))
	wantKind(t, p.Update(t.Context(), spec), schema.ErrorInvalid, "bad tag")
	if err := p.Update(t.Context(), spec); err != nil || !slices.Equal(n.GetTags(), []string{"new"}) {
		t.Errorf("asked for again: %v, tags %v", err, n.GetTags())
	}
}
