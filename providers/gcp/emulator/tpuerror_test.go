package emulator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// in is a scenario with 16 chips of v5litepod in the zone.
func in(change func(*cloud.Scenario, *cloud.Zone)) cloud.Scenario {
	s := cloud.Scenario{}
	z := cloud.Zone{Name: zone, Capacity: map[string]int{"v5litepod": 16}}
	if change != nil {
		change(&s, &z)
	}
	s.Zones = append(s.Zones, z)
	return s
}

func TestStockoutIsTheOperationsError(t *testing.T) {
	w := newWorld(t, in(nil))
	w.made("a", spot())
	op := w.create("b", spot())
	w.want("b", tpuapi.Node_CREATING)
	w.clock.Advance(time.Minute)
	w.failed(op, codes.ResourceExhausted, `There is no more capacity in the zone "us-west4-a"`)
	w.gone("b")
}

func TestQuotaIsRejectedAtOnce(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Tier: cloud.TierSpot, Limit: 16}}})
	w.made("a", spot())
	_, err := w.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "b", Node: spot()})
	wantCode(t, err, codes.ResourceExhausted, "Quota limit 'TPUPreemptiblev5litepodPerProjectPerRegionForTPUAPI' has been exceeded. Limit: 16 in region us-west4.")
	onDemand := spot()
	onDemand.SchedulingConfig = nil
	w.made("c", onDemand) // the quota of another tier
}

func TestCreateLimit(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	for i := range 90 {
		w.create(fmt.Sprintf("n%d", i), spot())
	}
	late := &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "late", Node: spot()}
	_, err := w.tpu.CreateNode(t.Context(), late)
	wantCode(t, err, codes.ResourceExhausted, "Quota limit 'CreateNode requests per minute' has been exceeded")
	w.clock.Advance(time.Minute)
	if _, err := w.tpu.CreateNode(t.Context(), late); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func TestInsufficientReservedCapacity(t *testing.T) {
	w := newWorld(t, in(func(_ *cloud.Scenario, z *cloud.Zone) { z.Reserved = map[string]int{"v5litepod": 16} }))
	reserved := spot()
	reserved.SchedulingConfig = &tpuapi.SchedulingConfig{Reserved: true}
	w.made("a", reserved)
	op := w.create("b", reserved)
	w.clock.Advance(time.Minute)
	w.failed(op, codes.FailedPrecondition, "Insufficient reserved capacity")
	w.made("c", spot()) // the reservation is no part of the other capacity
}

func TestPreemptedDuringCreate(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{CreatePreempted: cloud.Of(1)}})
	op := w.create("a", spot())
	w.clock.Advance(time.Minute)
	w.failed(op, codes.InvalidArgument, "not supported while in state PREEMPTED")
	w.want("a", tpuapi.Node_PREEMPTED) // it must be deleted before it can be made again
	_, err := w.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "a", Node: spot()})
	wantCode(t, err, codes.AlreadyExists, "already exists")
}

func TestLateFailure(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{LateFailures: cloud.Of(1)}})
	op := w.create("a", spot())
	w.clock.Advance(time.Second)
	if w.poll(op).GetDone() {
		t.Error("the operation failed before it was late")
	}
	w.clock.Advance(time.Minute)
	w.failed(op, codes.Internal, "internal error")
	w.gone("a")
}

func TestUnavailableIsNoEmptyList(t *testing.T) {
	w := newWorld(t, cloud.Scenario{API: cloud.API{FailureRate: 1}})
	_, err := w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: anyZone})
	wantCode(t, err, codes.Unavailable, "currently unavailable")
}

func TestLostReply(t *testing.T) {
	w := newWorld(t, cloud.Scenario{API: cloud.API{LostReplies: 1}})
	_, err := w.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "a", Node: spot()})
	wantCode(t, err, codes.Unavailable, "currently unavailable")
	if got := w.emulator.World().Groups; len(got) != 1 || got[0].Name != "a" {
		t.Errorf("the cloud has %v, want the node whose reply was lost", got)
	}
}

func TestCreateNodeRejections(t *testing.T) {
	tests := []struct {
		name   string
		change func(*tpuapi.CreateNodeRequest)
		code   codes.Code
		words  string
	}{
		{"unknown zone", func(r *tpuapi.CreateNodeRequest) { r.Parent = "projects/p/locations/us-west4-z" }, codes.NotFound, "Location us-west4-z is not found"},
		{"no parent", func(r *tpuapi.CreateNodeRequest) { r.Parent = "us-west4-a" }, codes.InvalidArgument, "is not a parent"},
		{"all zones", func(r *tpuapi.CreateNodeRequest) { r.Parent = anyZone }, codes.NotFound, "Location - is not found"},
		{"unknown type", func(r *tpuapi.CreateNodeRequest) { r.Node.AcceleratorType = "v5litepod-17" }, codes.InvalidArgument,
			"the accelerator v5litepod-17 was not found in zone us-west4-a"},
		{"a nickname", func(r *tpuapi.CreateNodeRequest) { r.Node.AcceleratorType = "v5e-16" }, codes.InvalidArgument, "the accelerator v5e-16 was not found"},
		{"type of another zone", func(r *tpuapi.CreateNodeRequest) { r.Node.AcceleratorType = "v6e-16" }, codes.InvalidArgument,
			"the accelerator v6e-16 was not found in zone us-west4-a"},
		{"TPU7x", func(r *tpuapi.CreateNodeRequest) {
			r.Parent, r.Node.AcceleratorType = "projects/p/locations/us-central1-c", "tpu7x-8"
		}, codes.InvalidArgument, "the accelerator tpu7x-8 was not found"},
		{"unknown runtime", func(r *tpuapi.CreateNodeRequest) { r.Node.RuntimeVersion = "v3" }, codes.InvalidArgument, `the runtime version "v3" was not found`},
		{"unknown network", func(r *tpuapi.CreateNodeRequest) { r.Node.NetworkConfig = &tpuapi.NetworkConfig{Network: "nowhere"} },
			codes.InvalidArgument, "The resource 'projects/acme-research/global/networks/nowhere' was not found"},
		{"underscore in the name", func(r *tpuapi.CreateNodeRequest) { r.NodeId = "a_b" }, codes.InvalidArgument, `Resource ID "a_b" is not valid`},
		{"64 letters", func(r *tpuapi.CreateNodeRequest) { r.NodeId = strings.Repeat("a", 64) }, codes.InvalidArgument, "is not valid"},
		{"no name", func(r *tpuapi.CreateNodeRequest) { r.NodeId = "" }, codes.InvalidArgument, "is not valid"},
		{"label value too long", func(r *tpuapi.CreateNodeRequest) { r.Node.Labels["k"] = strings.Repeat("v", 64) }, codes.InvalidArgument, "Label value"},
		{"upper case label", func(r *tpuapi.CreateNodeRequest) { r.Node.Labels["K"] = "v" }, codes.InvalidArgument, `Label key "K"`},
		{"metadata too long", func(r *tpuapi.CreateNodeRequest) { r.Node.Metadata["m"] = strings.Repeat("v", 256<<10+1) },
			codes.InvalidArgument, `The metadata value of "m" has 262145 bytes`},
		{"type and config", func(r *tpuapi.CreateNodeRequest) {
			r.Node.AcceleratorConfig = &tpuapi.AcceleratorConfig{Type: tpuapi.AcceleratorConfig_V5LITE_POD, Topology: "4x4"}
		}, codes.InvalidArgument, "Only one of accelerator_type and accelerator_config"},
		{"taken", func(r *tpuapi.CreateNodeRequest) { r.NodeId = "there" }, codes.AlreadyExists, parent + "/nodes/there' already exists"},
	}
	w := newWorld(t, cloud.Scenario{Networks: []string{"default"}})
	w.made("there", spot())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "a", Node: spot()}
			test.change(r)
			_, err := w.tpu.CreateNode(t.Context(), r)
			wantCode(t, err, test.code, test.words)
			if n := len(w.emulator.World().Groups); n != 1 {
				t.Errorf("the cloud has %d nodes after a rejection, want 1", n)
			}
		})
	}
}

func TestDenied(t *testing.T) {
	list := func(w *world) error {
		_, err := w.tpu.ListNodes(w.t.Context(), &tpuapi.ListNodesRequest{Parent: anyZone})
		return err
	}
	create := func(w *world) error {
		_, err := w.tpu.CreateNode(w.t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "a", Node: spot()})
		return err
	}
	tests := []struct {
		name     string
		scenario cloud.Scenario
		call     func(*world) error
		code     codes.Code
		words    string
		reason   string // of the ErrorInfo
	}{
		{"permission", cloud.Scenario{API: cloud.API{Deny: []string{"tpu.nodes.create"}}}, create, codes.PermissionDenied,
			"Permission 'tpu.nodes.create' denied on resource '//tpu.googleapis.com/" + parent + "'", "IAM_PERMISSION_DENIED"},
		{"another permission", cloud.Scenario{API: cloud.API{Deny: []string{"tpu.nodes.create"}}}, list, codes.OK, "", ""},
		{"API disabled", cloud.Scenario{API: cloud.API{Disabled: []string{"tpu.googleapis.com"}}}, list, codes.PermissionDenied,
			"Cloud TPU API has not been used in project acme-research before or it is disabled", "SERVICE_DISABLED"},
		{"wrong project", cloud.Scenario{Project: "other"}, list, codes.PermissionDenied, "Permission 'tpu.nodes.list' denied", "IAM_PERMISSION_DENIED"},
		{"no credentials", cloud.Scenario{API: cloud.API{Unauthenticated: true}}, list, codes.Unauthenticated, "invalid authentication credentials", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.call(newWorld(t, test.scenario))
			if test.code == codes.OK {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			wantCode(t, err, test.code, test.words)
			reason := ""
			for _, d := range status.Convert(err).Details() {
				if info, ok := d.(*errdetails.ErrorInfo); ok {
					reason = info.GetReason()
				}
			}
			if reason != test.reason {
				t.Errorf("the error's reason is %q, want %q", reason, test.reason)
			}
		})
	}
}

func TestRequestIDIsOneCreation(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	r := &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "a", Node: spot(), RequestId: "6e1a1d0e-0000-4000-8000-000000000001"}
	first, err := w.tpu.CreateNode(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.tpu.CreateNode(t.Context(), r)
	if err != nil {
		t.Fatalf("the same request again: %v", err)
	}
	if again.GetName() != first.GetName() {
		t.Errorf("the same request again is operation %s, want %s", again.GetName(), first.GetName())
	}
	r.RequestId = "6e1a1d0e-0000-4000-8000-000000000002"
	_, err = w.tpu.CreateNode(t.Context(), r)
	wantCode(t, err, codes.AlreadyExists, "already exists")
}
