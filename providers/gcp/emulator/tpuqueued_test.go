package emulator_test

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// queued asks for one spot node, named as the queued resource.
func queued(id string) *tpuapi.QueuedResource {
	return &tpuapi.QueuedResource{
		Resource: &tpuapi.QueuedResource_Tpu_{Tpu: &tpuapi.QueuedResource_Tpu{NodeSpec: []*tpuapi.QueuedResource_Tpu_NodeSpec{
			{Parent: parent, NodeId: id, Node: spot()},
		}}},
		Tier: &tpuapi.QueuedResource_Spot_{Spot: &tpuapi.QueuedResource_Spot{}},
	}
}

func (w *world) enqueue(id string, r *tpuapi.QueuedResource) *longrunningpb.Operation {
	w.t.Helper()
	op, err := w.tpu.CreateQueuedResource(w.t.Context(), &tpuapi.CreateQueuedResourceRequest{Parent: parent, QueuedResourceId: id, QueuedResource: r})
	if err != nil {
		w.t.Fatalf("queue %s: %v", id, err)
	}
	return op
}

func (w *world) wantQueued(id string, state tpuapi.QueuedResourceState_State) *tpuapi.QueuedResource {
	w.t.Helper()
	r, err := w.tpu.GetQueuedResource(w.t.Context(), &tpuapi.GetQueuedResourceRequest{Name: parent + "/queuedResources/" + id})
	if err != nil {
		w.t.Fatalf("get queued resource %s: %v", id, err)
	}
	if r.GetState().GetState() != state {
		w.t.Fatalf("queued resource %s is %v, want %v", id, r.GetState(), state)
	}
	return r
}

func (w *world) dequeue(id string, force bool) (*longrunningpb.Operation, error) {
	return w.tpu.DeleteQueuedResource(w.t.Context(), &tpuapi.DeleteQueuedResourceRequest{Name: parent + "/queuedResources/" + id, Force: force})
}

func TestQueuedResourceBecomesActive(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	op := w.enqueue("q", queued("a"))
	w.wantQueued("q", tpuapi.QueuedResourceState_CREATING)
	w.gone("a")
	w.clock.Advance(time.Second)
	w.wantQueued("q", tpuapi.QueuedResourceState_PROVISIONING)
	if !w.poll(op).GetDone() {
		t.Error("the operation waits for the nodes; it is for the queued resource only")
	}
	node := w.want("a", tpuapi.Node_CREATING)
	if node.GetQueuedResource() != parent+"/queuedResources/q" || !node.GetSchedulingConfig().GetSpot() {
		t.Errorf("the node is %v, want its queued resource named and spot", node)
	}
	w.clock.Advance(time.Minute)
	w.want("a", tpuapi.Node_READY)
	r := w.wantQueued("q", tpuapi.QueuedResourceState_ACTIVE)
	if r.GetTpu().GetNodeSpec()[0].GetNode().GetLabels()["fray-stack"] != "s" {
		t.Errorf("the queued resource is %v, want its node's labels in its node_spec", r)
	}
}

func TestQueuedResourceWaitsForCapacity(t *testing.T) {
	w := newWorld(t, in(nil))
	w.made("other", spot())
	w.enqueue("q", queued("a"))
	w.clock.Advance(time.Hour)
	w.wantQueued("q", tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES)
	w.gone("a")
	w.remove("other")
	w.clock.Advance(time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_ACTIVE)
}

func TestQueuedResourceWaitsForTheEndOfAStockout(t *testing.T) {
	w := newWorld(t, in(func(s *cloud.Scenario, _ *cloud.Zone) { s.Stockouts = []cloud.Window{{Zone: zone, To: time.Hour}} }))
	w.enqueue("q", queued("a"))
	w.clock.Advance(59 * time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES)
	w.clock.Advance(2 * time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_ACTIVE)
}

func TestQueuedResourceExpires(t *testing.T) {
	w := newWorld(t, in(func(_ *cloud.Scenario, z *cloud.Zone) { z.Capacity["v5litepod"] = 0 }))
	q := queued("a")
	q.QueueingPolicy = &tpuapi.QueuedResource_QueueingPolicy{
		StartTimingConstraints: &tpuapi.QueuedResource_QueueingPolicy_ValidUntilDuration{ValidUntilDuration: durationpb.New(time.Hour)},
	}
	w.enqueue("q", q)
	w.clock.Advance(59 * time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES)
	w.clock.Advance(2 * time.Minute)
	failed := w.wantQueued("q", tpuapi.QueuedResourceState_FAILED).GetState().GetFailedData().GetError()
	if failed.GetCode() != int32(codes.DeadlineExceeded) || !strings.Contains(failed.GetMessage(), "valid_until") {
		t.Errorf("it failed with %v, want code 4 and valid_until", failed)
	}
}

func TestQueuedResourceIsNotBeforeItsTime(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	q := queued("a")
	q.QueueingPolicy = &tpuapi.QueuedResource_QueueingPolicy{
		StartTimingConstraints: &tpuapi.QueuedResource_QueueingPolicy_ValidAfterDuration{ValidAfterDuration: durationpb.New(time.Hour)},
	}
	w.enqueue("q", q)
	w.clock.Advance(59 * time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_ACCEPTED)
	w.clock.Advance(2 * time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_ACTIVE)
}

func TestSpotQueuedResourceIsSuspended(t *testing.T) {
	for _, lingering := range []bool{false, true} {
		w := newWorld(t, cloud.Scenario{
			Conditions: cloud.Conditions{QueueConditions: cloud.QueueConditions{Lingering: cloud.Share{Set: true, P: map[bool]float64{true: 1}[lingering]}}},
			Quotas:     []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Limit: 16}},
		})
		w.enqueue("q", queued("a"))
		w.clock.Advance(time.Minute)
		w.preempt("a", false)
		w.want("a", tpuapi.Node_PREEMPTED)
		w.wantQueued("q", tpuapi.QueuedResourceState_SUSPENDING)
		w.clock.Advance(time.Minute)
		w.wantQueued("q", tpuapi.QueuedResourceState_SUSPENDED)
		if lingering {
			w.want("a", tpuapi.Node_PREEMPTED)
		} else {
			w.gone("a")
		}
		_, err := w.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "b", Node: spot()})
		wantCode(t, err, codes.ResourceExhausted, "Quota limit") // it still holds it
		_, err = w.dequeue("q", false)
		if lingering {
			wantCode(t, err, codes.FailedPrecondition, "set force")
			_, err = w.dequeue("q", true)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Minute)
		w.create("b", spot())
	}
}

func TestFailedQueuedResourceHoldsQuota(t *testing.T) {
	w := newWorld(t, cloud.Scenario{
		Conditions: cloud.Conditions{LateFailures: cloud.Of(1)},
		Quotas:     []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Limit: 16}},
	})
	w.enqueue("q", queued("a"))
	w.clock.Advance(time.Minute)
	if got := w.wantQueued("q", tpuapi.QueuedResourceState_FAILED).GetState().GetFailedData().GetError().GetCode(); got != int32(codes.Internal) {
		t.Errorf("it failed with code %d, want 13", got)
	}
	w.gone("a")
	_, err := w.tpu.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: "b", Node: spot()})
	wantCode(t, err, codes.ResourceExhausted, "Quota limit")
	if _, err := w.dequeue("q", false); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.create("b", spot())
}

func TestDeleteQueuedResourceNeedsForce(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.enqueue("q", queued("a"))
	w.clock.Advance(time.Minute)
	_, err := w.dequeue("q", false)
	wantCode(t, err, codes.FailedPrecondition, "set force")
	op, err := w.dequeue("q", true)
	if err != nil {
		t.Fatal(err)
	}
	w.wantQueued("q", tpuapi.QueuedResourceState_DELETING)
	w.want("a", tpuapi.Node_DELETING)
	w.clock.Advance(time.Minute)
	w.gone("a")
	if err := w.poll(op).GetResponse().UnmarshalTo(&tpuapi.QueuedResource{}); err != nil {
		t.Errorf("the response of a deletion: %v", err)
	}
	_, err = w.dequeue("q", true)
	wantCode(t, err, codes.NotFound, "was not found")
}

func TestDeletingANodeSuspendsItsQueuedResource(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.enqueue("q", queued("a"))
	w.clock.Advance(time.Minute)
	w.remove("a")
	w.clock.Advance(time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_SUSPENDED)
	w.clock.Advance(time.Minute)
	if _, err := w.dequeue("q", false); err != nil {
		t.Errorf("delete without force once its nodes are gone: %v", err)
	}
}

func TestResetQueuedResource(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.enqueue("q", queued("a"))
	w.clock.Advance(time.Minute)
	first := w.want("a", tpuapi.Node_READY)
	w.preempt("a", false)
	w.clock.Advance(time.Minute)
	if _, err := w.tpu.ResetQueuedResource(t.Context(), &tpuapi.ResetQueuedResourceRequest{Name: parent + "/queuedResources/q"}); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.wantQueued("q", tpuapi.QueuedResourceState_ACTIVE)
	if again := w.want("a", tpuapi.Node_READY); again.GetId() == first.GetId() {
		t.Error("the node after a reset is the same one")
	}
}

func TestMultiSlice(t *testing.T) {
	w := newWorld(t, in(func(_ *cloud.Scenario, z *cloud.Zone) { z.Capacity["v5litepod"] = 47 }))
	many := func(prefix string, count int32) *tpuapi.QueuedResource {
		q := queued("")
		q.GetTpu().NodeSpec[0].MultiNodeParams = &tpuapi.QueuedResource_Tpu_NodeSpec_MultiNodeParams{NodeCount: count, NodeIdPrefix: prefix}
		return q
	}
	w.enqueue("three", many("t", 3)) // all of them or none
	w.enqueue("two", many("s", 2))   // which fits, and does not wait for three
	w.clock.Advance(time.Minute)
	w.wantQueued("three", tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES)
	w.wantQueued("two", tpuapi.QueuedResourceState_ACTIVE)
	w.want("s-0", tpuapi.Node_READY)
	w.want("s-1", tpuapi.Node_READY)
	w.gone("t-0")
	_, err := w.tpu.CreateQueuedResource(t.Context(), &tpuapi.CreateQueuedResourceRequest{Parent: parent, QueuedResourceId: "one", QueuedResource: many("o", 1)})
	wantCode(t, err, codes.InvalidArgument, "node_count must be at least 2")
}

func TestQueuedResourceTiers(t *testing.T) {
	tests := []struct {
		name string
		tier func(*tpuapi.QueuedResource)
		want cloud.Tier
	}{
		{"spot", func(*tpuapi.QueuedResource) {}, cloud.TierSpot},
		{"best effort", func(q *tpuapi.QueuedResource) {
			q.Tier = &tpuapi.QueuedResource_BestEffort_{BestEffort: &tpuapi.QueuedResource_BestEffort{}}
		}, cloud.TierSpot},
		{"guaranteed", func(q *tpuapi.QueuedResource) {
			q.Tier = &tpuapi.QueuedResource_Guaranteed_{Guaranteed: &tpuapi.QueuedResource_Guaranteed{}}
		}, cloud.TierOnDemand},
		{"reserved", func(q *tpuapi.QueuedResource) {
			q.Tier = &tpuapi.QueuedResource_Guaranteed_{Guaranteed: &tpuapi.QueuedResource_Guaranteed{Reserved: true}}
		}, cloud.TierReserved},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, in(func(_ *cloud.Scenario, z *cloud.Zone) { z.Reserved = map[string]int{"v5litepod": 16} }))
			q := queued("a")
			test.tier(q)
			w.enqueue("q", q)
			w.clock.Advance(time.Minute)
			w.wantQueued("q", tpuapi.QueuedResourceState_ACTIVE)
			if got := w.emulator.World().Groups[0].Tier; got != test.want {
				t.Errorf("its node is %s, want %s", got, test.want)
			}
		})
	}
}

func TestListQueuedResources(t *testing.T) {
	w := newWorld(t, cloud.Scenario{PageSize: 1})
	w.enqueue("q", queued("a"))
	w.enqueue("r", queued("b"))
	if err := w.emulator.Cloud().Outage("us-central1-a", 0); err != nil {
		t.Fatal(err)
	}
	first, err := w.tpu.ListQueuedResources(t.Context(), &tpuapi.ListQueuedResourcesRequest{Parent: anyZone})
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.tpu.ListQueuedResources(t.Context(), &tpuapi.ListQueuedResourcesRequest{Parent: anyZone, PageToken: first.GetNextPageToken()})
	if err != nil {
		t.Fatal(err)
	}
	got := append(first.GetQueuedResources(), second.GetQueuedResources()...)
	if len(got) != 2 || got[1].GetName() != parent+"/queuedResources/r" || second.GetNextPageToken() != "" || len(first.GetUnreachable()) != 1 {
		t.Errorf("the pages are %v and %v, want q, then r, each without us-central1-a", first, second)
	}
	_, err = w.tpu.CreateQueuedResource(t.Context(), &tpuapi.CreateQueuedResourceRequest{Parent: parent, QueuedResourceId: "q", QueuedResource: queued("c")})
	wantCode(t, err, codes.AlreadyExists, "queuedResources/q' already exists")
}
