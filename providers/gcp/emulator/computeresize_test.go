package emulator_test

import (
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

func (w *computeWorld) flexGroup() {
	w.t.Helper()
	w.template("slice", func(vm *computepb.Instance) {
		vm.Scheduling = &computepb.Scheduling{
			ProvisioningModel: new("FLEX_START"), InstanceTerminationAction: new("DELETE"),
			MaxRunDuration: &computepb.Duration{Seconds: new(int64(3600))},
		}
	})
	w.policy("slice", "4x4")
	w.insertGroup(0)
}

func (w *computeWorld) requestMachines() {
	w.t.Helper()
	_, err := w.resizes.Insert(w.t.Context(), &computepb.InsertInstanceGroupManagerResizeRequestRequest{
		Project: project, Zone: zone, InstanceGroupManager: "slice",
		InstanceGroupManagerResizeRequestResource: &computepb.InstanceGroupManagerResizeRequest{
			Name: new("flex"), ResizeBy: new(int32(4)), RequestedRunDuration: &computepb.Duration{Seconds: new(int64(7200))},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *computeWorld) resizeState() *computepb.InstanceGroupManagerResizeRequest {
	w.t.Helper()
	request, err := w.resizes.Get(w.t.Context(), &computepb.GetInstanceGroupManagerResizeRequestRequest{
		Project: project, Zone: zone, InstanceGroupManager: "slice", ResizeRequest: "flex",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return request
}

// Flex-start: a resize request waits, then its machines run for as long as was asked.
func TestResizeRequestWaitsAndEnds(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{Stockouts: []cloud.Window{{Zone: zone, To: time.Hour}}})
	w.flexGroup()
	w.requestMachines()
	w.clock.Advance(30 * time.Minute)
	request := w.resizeState()
	if got := request.GetStatus().GetLastAttempt().GetError().GetErrors(); request.GetState() != "ACCEPTED" || len(got) != 1 ||
		got[0].GetCode() != "ZONE_RESOURCE_POOL_EXHAUSTED" {
		t.Errorf("while it waits: got %v, want ACCEPTED and the stockout", request)
	}
	w.wantGroup("size 0 creating 0 deleting 0 none 0 stable true")
	w.clock.Advance(time.Hour)
	if got := w.resizeState().GetState(); got != "SUCCEEDED" {
		t.Errorf("with capacity: got %s, want SUCCEEDED", got)
	}
	w.wantGroup("size 4 creating 0 deleting 0 none 4 stable true")
	w.clock.Advance(2 * time.Hour)
	w.wantGroup("size 0 creating 0 deleting 0 none 0 stable true")
	w.wantNothing()
}

func TestResizeRequestCancelled(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{Stockouts: []cloud.Window{{Zone: zone, To: time.Hour}}})
	w.flexGroup()
	w.requestMachines()
	cancel := &computepb.CancelInstanceGroupManagerResizeRequestRequest{
		Project: project, Zone: zone, InstanceGroupManager: "slice", ResizeRequest: "flex",
	}
	if _, err := w.resizes.Cancel(t.Context(), cancel); err != nil {
		t.Fatal(err)
	}
	if got := w.resizeState().GetState(); got != "CANCELLED" {
		t.Errorf("got %s, want CANCELLED", got)
	}
	_, err := w.resizes.Cancel(t.Context(), cancel)
	wantRESTRejection(t, "cancel it again", err, "400 invalid")
	w.clock.Advance(3 * time.Hour)
	w.wantGroup("size 0 creating 0 deleting 0 none 0 stable true")
	w.wantNothing()
}

func TestResizeRequestFails(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{Quotas: []cloud.Quota{{Region: region, Type: "v5litepod", Limit: 15}}})
	w.flexGroup()
	w.requestMachines()
	w.clock.Advance(vmUp)
	request := w.resizeState()
	if got := request.GetStatus().GetError().GetErrors(); request.GetState() != "FAILED" || len(got) != 1 || got[0].GetCode() != "QUOTA_EXCEEDED" {
		t.Errorf("got %v, want FAILED and the quota", request)
	}
}
