package emulator_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

func key(id string) cloud.Key {
	return cloud.Key{Project: project, Zone: zone, Kind: cloud.KindNode, Name: id}
}

func (w *world) preempt(id string, notice bool) {
	w.t.Helper()
	if err := w.emulator.Cloud().Preempt(key(id), notice); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(id string) {
	w.t.Helper()
	if _, err := w.tpu.DeleteNode(w.t.Context(), &tpuapi.DeleteNodeRequest{Name: parent + "/nodes/" + id}); err != nil {
		w.t.Fatal(err)
	}
}

func TestPreemptedNodeHoldsCapacityAndQuotaUntilDeleted(t *testing.T) {
	w := newWorld(t, in(func(s *cloud.Scenario, z *cloud.Zone) {
		z.Capacity["v5litepod"] = 32
		s.Quotas = []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Limit: 16}}
	}))
	w.made("a", spot())
	w.preempt("a", false)
	w.want("a", tpuapi.Node_PREEMPTED)
	w.clock.Advance(24 * time.Hour)
	w.want("a", tpuapi.Node_PREEMPTED)
	again := &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "b", Node: spot()}
	_, err := w.tpu.CreateNode(t.Context(), again)
	wantCode(t, err, codes.ResourceExhausted, "Quota limit")
	if got := w.emulator.World().Capacity; len(got) == 0 || got[0].Used != 16 {
		t.Errorf("the capacity is %v, want 16 chips taken", got)
	}
	w.remove("a")
	w.clock.Advance(time.Minute)
	if _, err := w.tpu.CreateNode(t.Context(), again); err != nil {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestPreemptionWithNotice(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("a", spot())
	w.preempt("a", true)
	w.clock.Advance(29 * time.Second)
	w.want("a", tpuapi.Node_READY)
	w.clock.Advance(time.Second)
	w.want("a", tpuapi.Node_PREEMPTED)
}

func TestPreemptedNodeIsNotAlwaysPREEMPTED(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{OtherEndStates: cloud.Of(1)}})
	dead := []tpuapi.Node_State{
		tpuapi.Node_TERMINATED, tpuapi.Node_STOPPED, tpuapi.Node_STOPPING, tpuapi.Node_HIDDEN, tpuapi.Node_UNKNOWN,
	}
	seen := map[tpuapi.Node_State]bool{}
	for i := range 40 {
		id := "n" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		w.made(id, spot())
		w.preempt(id, false)
		node, err := w.tpu.GetNode(t.Context(), &tpuapi.GetNodeRequest{Name: parent + "/nodes/" + id})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(dead, node.GetState()) {
			t.Fatalf("preempted node is %v, want one of %v", node.GetState(), dead)
		}
		seen[node.GetState()] = true
	}
	if len(seen) != len(dead) {
		t.Errorf("40 preempted nodes were in the states %v, want each of %v", seen, dead)
	}
}

func TestPreemptedNodeShownREADYForAWhile(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{StaleStates: cloud.Of(1), StaleFor: cloud.Range{Min: time.Hour, Max: time.Hour}}})
	w.made("a", spot())
	w.preempt("a", false)
	w.want("a", tpuapi.Node_READY)
	if g := w.emulator.World().Groups[0]; g.State != cloud.StatePreempted || g.Hosts[0].On {
		t.Errorf("the node is %s with a host on: %v; want PREEMPTED and off", g.State, g.Hosts[0].On)
	}
	w.clock.Advance(time.Hour)
	w.want("a", tpuapi.Node_PREEMPTED)
}

func TestOperationStaysOpenWhileHostsServe(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{OperationLag: cloud.Range{Min: time.Hour, Max: time.Hour}}})
	op := w.create("a", spot())
	w.clock.Advance(time.Minute)
	w.want("a", tpuapi.Node_CREATING)
	if w.poll(op).GetDone() {
		t.Error("the operation is done while the node shows CREATING")
	}
	for _, h := range w.emulator.World().Groups[0].Hosts {
		if !h.On {
			t.Errorf("host %s is off, want it to serve", h.ID)
		}
	}
	w.clock.Advance(time.Hour)
	w.want("a", tpuapi.Node_READY)
	if !w.poll(op).GetDone() {
		t.Error("the operation is open while the node shows READY")
	}
}

func TestHostsBootBeforeTheirSiblings(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{BootSpread: cloud.Range{Max: time.Hour}}})
	w.create("a", spot())
	counts := map[int]bool{}
	for range 120 {
		w.clock.Advance(30 * time.Second)
		on := 0
		for _, h := range w.emulator.World().Groups[0].Hosts {
			if h.On {
				on++
			}
		}
		counts[on] = true
	}
	if !counts[0] && !counts[1] || !counts[2] && !counts[3] || !counts[4] {
		t.Errorf("over an hour there were %v hosts on, want them one after another up to 4", counts)
	}
}

func TestReadyNodeWithDeadHosts(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{DeadHosts: cloud.Of(1)}})
	node := w.made("a", spot())
	if node.GetHealth() != tpuapi.Node_HEALTHY {
		t.Errorf("the node's health is %v: nothing should show dead hosts", node.GetHealth())
	}
	for _, h := range w.emulator.World().Groups[0].Hosts {
		if h.On {
			t.Errorf("host %s is on, want it dead", h.ID)
		}
	}
}

func TestReadyNodeWithoutHealthAndEndpoints(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{UnknownHealthFor: cloud.Range{Min: time.Hour, Max: time.Hour}}})
	node := w.made("a", spot())
	if node.GetHealth() != tpuapi.Node_HEALTH_UNSPECIFIED || len(node.GetNetworkEndpoints()) > 0 {
		t.Errorf("a vague node shows %v and %v", node.GetHealth(), node.GetNetworkEndpoints())
	}
	w.clock.Advance(time.Hour)
	node = w.want("a", tpuapi.Node_READY)
	if node.GetHealth() != tpuapi.Node_HEALTHY || len(node.GetNetworkEndpoints()) != 4 {
		t.Errorf("later it shows %v and %v, want HEALTHY and 4 endpoints", node.GetHealth(), node.GetNetworkEndpoints())
	}
}

func TestStuckDeletion(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Conditions: cloud.Conditions{
		StuckDeletions: cloud.Of(1), StuckFor: cloud.Range{Min: time.Hour, Max: time.Hour},
	}})
	w.made("a", spot())
	w.remove("a")
	w.clock.Advance(59 * time.Minute)
	w.want("a", tpuapi.Node_DELETING)
	w.remove("a") // once more does no harm
	w.clock.Advance(2 * time.Minute)
	w.gone("a")
}

func TestPreemptibleEndsAfterADaySpotDoesNot(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	preemptible := spot()
	preemptible.SchedulingConfig = &tpuapi.SchedulingConfig{Preemptible: true}
	w.create("a", preemptible)
	w.create("b", spot())
	w.clock.Advance(24*time.Hour - time.Minute)
	w.want("a", tpuapi.Node_READY)
	w.clock.Advance(2 * time.Minute)
	w.want("a", tpuapi.Node_TERMINATED)
	w.clock.Advance(30 * 24 * time.Hour)
	w.want("b", tpuapi.Node_READY)
}

func TestStopAndStart(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("pod", spot())
	_, err := w.tpu.StopNode(t.Context(), &tpuapi.StopNodeRequest{Name: parent + "/nodes/pod"})
	wantCode(t, err, codes.InvalidArgument, "pod has 4 hosts")
	single := spot()
	single.AcceleratorType = "v5litepod-4"
	w.made("a", single)
	name := parent + "/nodes/a"
	if _, err := w.tpu.StopNode(t.Context(), &tpuapi.StopNodeRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	w.want("a", tpuapi.Node_STOPPING)
	w.clock.Advance(time.Minute)
	w.want("a", tpuapi.Node_STOPPED)
	_, err = w.tpu.StopNode(t.Context(), &tpuapi.StopNodeRequest{Name: name})
	wantCode(t, err, codes.InvalidArgument, "not supported while in state STOPPED")
	if _, err := w.tpu.StartNode(t.Context(), &tpuapi.StartNodeRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	w.want("a", tpuapi.Node_STARTING)
	w.clock.Advance(time.Minute)
	w.want("a", tpuapi.Node_READY)
	w.preempt("a", false)
	_, err = w.tpu.StartNode(t.Context(), &tpuapi.StartNodeRequest{Name: name})
	wantCode(t, err, codes.InvalidArgument, "not supported while in state PREEMPTED")
}

func TestMaintenance(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("a", spot())
	_, err := w.tpu.SimulateMaintenanceEvent(t.Context(), &tpuapi.SimulateMaintenanceEventRequest{Name: parent + "/nodes/a", WorkerIds: []string{"2"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.want("a", tpuapi.Node_READY).GetUpcomingMaintenance().GetMaintenanceStatus(); got != tpuapi.UpcomingMaintenance_PENDING {
		t.Errorf("before it the maintenance is %v, want PENDING", got)
	}
	w.clock.Advance(time.Minute)
	node := w.want("a", tpuapi.Node_REPAIRING)
	if node.GetUpcomingMaintenance().GetMaintenanceStatus() != tpuapi.UpcomingMaintenance_ONGOING {
		t.Errorf("in it the maintenance is %v, want ONGOING", node.GetUpcomingMaintenance())
	}
	for i, h := range w.emulator.World().Groups[0].Hosts {
		if h.On != (i != 2) {
			t.Errorf("host %d is on: %v", i, h.On)
		}
	}
	w.clock.Advance(10 * time.Minute)
	if w.want("a", tpuapi.Node_READY).GetUpcomingMaintenance() != nil {
		t.Error("maintenance is still shown after it")
	}
	_, err = w.tpu.SimulateMaintenanceEvent(t.Context(), &tpuapi.SimulateMaintenanceEventRequest{Name: parent + "/nodes/a", WorkerIds: []string{"4"}})
	wantCode(t, err, codes.InvalidArgument, `no worker "4"`)
}

// TestEveryNodeState has the API show each state that it has, also those that no
// call leads to.
func TestEveryNodeState(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("a", spot())
	for number, text := range tpuapi.Node_State_name {
		if number == 0 {
			continue
		}
		if err := w.emulator.Cloud().Pretend(key("a"), cloud.State(text)); err != nil {
			t.Fatal(err)
		}
		w.want("a", tpuapi.Node_State(number))
	}
}

func TestGetGuestAttributes(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.made("a", spot())
	id := w.emulator.World().Groups[0].Hosts[1].ID
	for k, v := range map[string]string{"status": "ready", "version": "7"} {
		if err := w.emulator.Cloud().SetGuestAttribute(id, cloud.GuestAttributeKey{Namespace: "fray", Key: k}, v); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.tpu.GetGuestAttributes(t.Context(), &tpuapi.GetGuestAttributesRequest{Name: parent + "/nodes/a", QueryPath: "fray/status"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.GetGuestAttributes()) != 4 {
		t.Fatalf("got %d workers, want 4", len(r.GetGuestAttributes()))
	}
	for i, of := range r.GetGuestAttributes() {
		items := of.GetQueryValue().GetItems()
		if i == 1 && (len(items) != 1 || items[0].GetValue() != "ready") || i != 1 && len(items) > 0 {
			t.Errorf("worker %d has %v", i, items)
		}
	}
	one, err := w.tpu.GetGuestAttributes(t.Context(), &tpuapi.GetGuestAttributesRequest{
		Name: parent + "/nodes/a", QueryPath: "fray/", WorkerIds: []string{"1"},
	})
	if err != nil || len(one.GetGuestAttributes()) != 1 || len(one.GetGuestAttributes()[0].GetQueryValue().GetItems()) != 2 {
		t.Errorf("worker 1 has %v (%v), want 2 attributes", one, err)
	}
}
