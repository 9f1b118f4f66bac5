package gcp

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// asked is the body of the only call of a method that creates something.
func (s *computeService) asked(t *testing.T, method string) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies[method]) != 1 {
		t.Fatalf("there were %d of %s", len(s.bodies[method]), method)
	}
	text, err := protojson.Marshal(s.bodies[method][0])
	if err != nil {
		t.Fatal(err)
	}
	return decodeJSON(t, text)
}

func TestComputeInstanceOnTheWire(t *testing.T) {
	s := newComputeService(t)
	spec := gcetest.Spec("one", gcetest.OfTPU("v6e-8", 1), gcetest.Spot, func(s *schema.SliceSpec) {
		s.Cloud.Network, s.Cloud.Subnetwork, s.Cloud.ServiceAccount = "net", "sub", "a@p.iam.gserviceaccount.com"
		s.Cloud.Disks, s.Cloud.Live = "data,base:ro", schema.CloudLive{Labels: "team=rl", Tags: "a,b", InternalIPs: true}
	})
	p := s.provider(t, time.Now)
	p.config.Bootstrap = bootWith{"startup-script": "#!/bin/sh", "enable-guest-attributes": "TRUE"}
	if err := p.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	got := s.asked(t, "instances.insert")
	mark, err := mark.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "one", "machineType": "zones/us-west4-a/machineTypes/ct6e-standard-8t",
		"labels": map[string]any{"fray-stack": "stack-a", "fray-slice": "one", "team": "rl"},
		"tags":   map[string]any{"items": []any{"a", "b"}},
		"metadata": map[string]any{"items": []any{
			map[string]any{"key": "enable-guest-attributes", "value": "TRUE"},
			map[string]any{"key": "fray-spec", "value": mark},
			map[string]any{"key": "startup-script", "value": "#!/bin/sh"},
		}},
		"disks": []any{
			map[string]any{"boot": true, "autoDelete": true, "initializeParams": map[string]any{
				"sourceImage": "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
				"diskSizeGb":  "200", "diskType": "zones/us-west4-a/diskTypes/hyperdisk-balanced",
			}},
			map[string]any{"source": "projects/p/zones/us-west4-a/disks/data", "deviceName": "data", "autoDelete": false, "mode": "READ_WRITE"},
			map[string]any{"source": "projects/p/zones/us-west4-a/disks/base", "deviceName": "base", "autoDelete": false, "mode": "READ_ONLY"},
		},
		"networkInterfaces": []any{map[string]any{
			"network": "projects/p/global/networks/net", "subnetwork": "projects/p/regions/us-west4/subnetworks/sub",
		}},
		"scheduling": map[string]any{
			"provisioningModel": "SPOT", "instanceTerminationAction": "STOP", "automaticRestart": false, "onHostMaintenance": "TERMINATE",
		},
		"serviceAccounts": []any{map[string]any{
			"email": "a@p.iam.gserviceaccount.com", "scopes": []any{"https://www.googleapis.com/auth/cloud-platform"},
		}},
	}
	for _, own := range []string{"zone", "status", "creationTimestamp", "labelFingerprint"} {
		delete(got, own) // the service's
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
}

func TestComputeInstanceWithoutWishes(t *testing.T) {
	s := newComputeService(t)
	if err := s.provider(t, time.Now).Create(t.Context(), gcetest.Spec("one")); err != nil {
		t.Fatal(err)
	}
	got := s.asked(t, "instances.insert")
	want := []any{map[string]any{"network": "projects/p/global/networks/default", "accessConfigs": []any{
		map[string]any{"name": "External NAT", "type": "ONE_TO_ONE_NAT"},
	}}}
	if diff := cmp.Diff(want, got["networkInterfaces"]); diff != "" {
		t.Errorf("network (-want +got):\n%s", diff)
	}
	if account, _ := got["serviceAccounts"].([]any)[0].(map[string]any); account["email"] != "default" {
		t.Errorf("service account is %v", account)
	}
}

func TestComputeGroupOnTheWire(t *testing.T) {
	s := newComputeService(t)
	spec := gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4), gcetest.Spot)
	carry(t, s.provider(t, time.Now), spec)
	policy := s.asked(t, "policies.insert")
	if diff := cmp.Diff(map[string]any{
		"name": "many", "description": "part of fray slice many of stack stack-a in us-west4-a",
		"workloadPolicy": map[string]any{"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4", "acceleratorTopologyMode": "AUTO_CONNECT"},
	}, policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	group := s.asked(t, "groups.insert")
	for _, own := range []string{"zone", "fingerprint", "creationTimestamp"} {
		delete(group, own) // the service's
	}
	if diff := cmp.Diff(map[string]any{
		"name": "many", "description": "part of fray slice many of stack stack-a in us-west4-a", "baseInstanceName": "many", "targetSize": 4.0,
		"instanceTemplate":        "projects/p/global/instanceTemplates/many",
		"targetSizePolicy":        map[string]any{"mode": "BULK"},
		"resourcePolicies":        map[string]any{"workloadPolicy": "https://www.googleapis.com/compute/v1/projects/p/regions/us-west4/resourcePolicies/many"},
		"instanceLifecyclePolicy": map[string]any{"defaultActionOnFailure": "DO_NOTHING"},
		"updatePolicy":            map[string]any{"type": "OPPORTUNISTIC"},
	}, group); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	template := s.asked(t, "templates.insert")
	properties, _ := template["properties"].(map[string]any)
	if properties["machineType"] != "ct6e-standard-4t" || template["name"] != "many" {
		t.Errorf("template is %v", template)
	}
	disks, _ := properties["disks"].([]any)
	if start, _ := disks[0].(map[string]any)["initializeParams"].(map[string]any); start["diskType"] != "hyperdisk-balanced" {
		t.Errorf("a template must name a disk type without its zone: %v", start)
	}
}

func TestComputeFlexStartGroupIsResizedByARequest(t *testing.T) {
	s := newComputeService(t)
	spec := gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4), gcetest.FlexStart)
	carry(t, s.provider(t, time.Now), spec)
	if group := s.asked(t, "groups.insert"); group["targetSize"] != 0.0 {
		t.Errorf("the group begins with %v machines", group["targetSize"])
	}
	got := s.asked(t, "resizes.insert")
	delete(got, "state") // the service's
	if diff := cmp.Diff(map[string]any{"name": "many", "resizeBy": 4.0, "requestedRunDuration": map[string]any{"seconds": "3600"}}, got); diff != "" {
		t.Errorf("resize request (-want +got):\n%s", diff)
	}
}

func TestComputeFlexStartGroupWhereResizeRequestsAreRejected(t *testing.T) {
	s := newComputeService(t)
	s.reject = func(method string) *computeFail {
		if method == "resizes.insert" {
			return &computeFail{400, "invalid", "Creating resize requests for managed instance group with TPU is not allowed."}
		}
		return nil
	}
	spec := gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4), gcetest.FlexStart)
	carry(t, s.provider(t, time.Now), spec)
	if size := s.groups["us-west4-a/many"].GetTargetSize(); size != 4 {
		t.Errorf("the group is to have %d machines, want 4", size)
	}
	s.do(func() { s.reject = nil })
	discard(t, s, s.provider(t, time.Now), spec)
}

// bootWith is what machines find in their metadata.
type bootWith map[string]string

func (b bootWith) Metadata(schema.SliceSpec) (map[string]string, error) { return b, nil }
