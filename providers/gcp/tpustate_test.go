package gcp

import (
	"strings"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

type wantStanding struct {
	phase  schema.SlicePhase
	cause  schema.ErrorKind
	reason string // a part of it; "": there is none
}

// listOne lists a service with one slice in it.
func listOne(t *testing.T, n *tpuapi.Node, q *tpuapi.QueuedResource) schema.SliceStatus {
	t.Helper()
	s := newTPUService(t)
	if n != nil {
		s.setNode("one", n)
	}
	if q != nil {
		s.setQueued("one", q)
	}
	inventory, err := s.provider(t).Inventory(t.Context(), "stack-a")
	if err != nil {
		t.Fatal(err)
	}
	if len(inventory.Slices) != 1 || inventory.Slices[0].Spec.Name != "one" {
		t.Fatalf("the inventory is %+v, want the slice one", inventory)
	}
	return inventory.Slices[0]
}

func (w wantStanding) check(t *testing.T, got schema.SliceStatus) {
	t.Helper()
	if got.Phase != w.phase || got.Cause != w.cause {
		t.Errorf("it is %s of %q, want %s of %q", got.Phase, got.Cause, w.phase, w.cause)
	}
	if (w.reason == "") != (got.Reason == "") || !strings.Contains(got.Reason, w.reason) {
		t.Errorf("the reason is %q, want %q", got.Reason, w.reason)
	}
	if got.CreatedAt.IsZero() {
		t.Error("it has no time of creation")
	}
}

// Every state of a node, of a spot slice and of one on demand.
func TestNodeStates(t *testing.T) {
	dead := func(cause schema.ErrorKind, reason string) wantStanding {
		return wantStanding{schema.SliceDead, cause, reason}
	}
	preempted := schema.ErrorPreempted
	tests := map[tpuapi.Node_State]struct{ spot, demand wantStanding }{
		tpuapi.Node_STATE_UNSPECIFIED: {dead("", "STATE_UNSPECIFIED"), dead("", "STATE_UNSPECIFIED")},
		tpuapi.Node_CREATING:          {wantStanding{phase: schema.SliceCreating}, wantStanding{phase: schema.SliceCreating}},
		tpuapi.Node_READY:             {wantStanding{phase: schema.SliceReady}, wantStanding{phase: schema.SliceReady}},
		tpuapi.Node_RESTARTING:        {wantStanding{schema.SliceReady, "", "RESTARTING"}, wantStanding{schema.SliceReady, "", "RESTARTING"}},
		tpuapi.Node_REIMAGING:         {dead("", "REIMAGING"), dead("", "REIMAGING")},
		tpuapi.Node_DELETING:          {wantStanding{phase: schema.SliceDeleting}, wantStanding{phase: schema.SliceDeleting}},
		tpuapi.Node_REPAIRING:         {wantStanding{schema.SliceReady, "", "REPAIRING"}, wantStanding{schema.SliceReady, "", "REPAIRING"}},
		tpuapi.Node_STOPPED:           {dead(preempted, "STOPPED"), dead("", "STOPPED")},
		tpuapi.Node_STOPPING:          {dead(preempted, "STOPPING"), dead("", "STOPPING")},
		tpuapi.Node_STARTING:          {wantStanding{schema.SliceCreating, "", "STARTING"}, wantStanding{schema.SliceCreating, "", "STARTING"}},
		tpuapi.Node_PREEMPTED:         {dead(preempted, "PREEMPTED"), dead(preempted, "PREEMPTED")},
		tpuapi.Node_TERMINATED:        {dead(preempted, "TERMINATED"), dead("", "TERMINATED")},
		tpuapi.Node_HIDING:            {dead("", "HIDING"), dead("", "HIDING")},
		tpuapi.Node_HIDDEN:            {dead("", "HIDDEN"), dead("", "HIDDEN")},
		tpuapi.Node_UNHIDING:          {dead("", "UNHIDING"), dead("", "UNHIDING")},
		tpuapi.Node_UNKNOWN:           {dead("", "UNKNOWN"), dead("", "UNKNOWN")},
		tpuapi.Node_State(99):         {dead("", "99"), dead("", "99")},
	}
	for number, name := range tpuapi.Node_State_name {
		if _, ok := tests[tpuapi.Node_State(number)]; !ok {
			t.Errorf("the state %s is not tested", name)
		}
	}
	for state, test := range tests {
		t.Run(state.String(), func(t *testing.T) {
			spot, demand := nodeOf(t, tpuSpec("one")), nodeOf(t, tpuSpec("one", onDemand))
			spot.State, demand.State = state, state
			test.spot.check(t, listOne(t, spot, nil))
			test.demand.check(t, listOne(t, demand, nil))
		})
	}
}

// Every state of a queued resource, before it has a node, with one that is
// ready, and with one that was preempted.
func TestQueuedResourceStates(t *testing.T) {
	waiting := func(state string) wantStanding { return wantStanding{schema.SliceCreating, "", state} }
	dead := func(reason string) wantStanding {
		return wantStanding{schema.SliceDead, schema.ErrorPreempted, reason}
	}
	ready, deleting := wantStanding{phase: schema.SliceReady}, wantStanding{phase: schema.SliceDeleting}
	lost := dead("its node is PREEMPTED")
	tests := map[tpuapi.QueuedResourceState_State]struct{ without, ready, preempted wantStanding }{
		tpuapi.QueuedResourceState_STATE_UNSPECIFIED: {waiting("waiting in the queue: STATE_UNSPECIFIED"), ready, lost},
		tpuapi.QueuedResourceState_CREATING:          {waiting("waiting in the queue: CREATING"), ready, lost},
		tpuapi.QueuedResourceState_ACCEPTED:          {waiting("waiting in the queue: ACCEPTED"), ready, lost},
		tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES: {
			waiting("waiting in the queue: WAITING_FOR_RESOURCES"), ready, lost,
		},
		tpuapi.QueuedResourceState_PROVISIONING: {waiting("PROVISIONING"), ready, lost},
		tpuapi.QueuedResourceState_ACTIVE:       {dead("ACTIVE and its node is gone"), ready, lost},
		tpuapi.QueuedResourceState_SUSPENDING:   {dead("SUSPENDING and its node is gone"), ready, lost},
		tpuapi.QueuedResourceState_SUSPENDED: {
			dead("its queued resource is SUSPENDED"), dead("its queued resource is SUSPENDED"), dead("its queued resource is SUSPENDED"),
		},
		tpuapi.QueuedResourceState_FAILED: {
			wantStanding{schema.SliceDead, "", "has FAILED"}, wantStanding{schema.SliceDead, "", "has FAILED"},
			wantStanding{schema.SliceDead, "", "has FAILED"},
		},
		tpuapi.QueuedResourceState_DELETING:  {deleting, deleting, deleting},
		tpuapi.QueuedResourceState_State(99): {waiting("99"), ready, lost},
	}
	for number, name := range tpuapi.QueuedResourceState_State_name {
		if _, ok := tests[tpuapi.QueuedResourceState_State(number)]; !ok {
			t.Errorf("the state %s is not tested", name)
		}
	}
	for state, test := range tests {
		t.Run(state.String(), func(t *testing.T) {
			spec := tpuSpec("one", queuedSpec)
			q := queuedOf(t, spec)
			q.State.State = state
			test.without.check(t, listOne(t, nil, q))
			n := nodeOf(t, spec)
			test.ready.check(t, listOne(t, n, q))
			n.State = tpuapi.Node_PREEMPTED
			test.preempted.check(t, listOne(t, n, q))
		})
	}
}

// What waits for its turn has no machines whose time to come up could be running.
func TestOnlyTheQueueIsWaited(t *testing.T) {
	waits := map[tpuapi.QueuedResourceState_State]bool{
		tpuapi.QueuedResourceState_CREATING: true, tpuapi.QueuedResourceState_ACCEPTED: true,
		tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES: true, tpuapi.QueuedResourceState_STATE_UNSPECIFIED: true,
	}
	for number, name := range tpuapi.QueuedResourceState_State_name {
		q := queuedOf(t, tpuSpec("one", queuedSpec))
		q.State.State = tpuapi.QueuedResourceState_State(number)
		if got := listOne(t, nil, q).Waiting; got != waits[q.State.State] {
			t.Errorf("%s: waiting is %t, want %t", name, got, waits[q.State.State])
		}
	}
	if listOne(t, nodeOf(t, tpuSpec("one")), nil).Waiting {
		t.Error("a node is listed as waiting in the queue")
	}
}

func TestFailedQueuedResourceSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		err  *spb.Status
		want wantStanding
	}{
		"stockout": {
			&spb.Status{Code: int32(codes.ResourceExhausted), Message: "There is no more capacity in the zone \"us-west4-a\""},
			wantStanding{schema.SliceDead, schema.ErrorCapacity, "no more capacity"},
		},
		"quota": {
			&spb.Status{Code: int32(codes.ResourceExhausted), Message: "Quota limit 'TPUV5sLitepodPerProjectPerRegion' has been exceeded. Limit: 16 in region us-west4."},
			wantStanding{schema.SliceDead, schema.ErrorQuota, "Limit: 16"},
		},
		"reservation": {
			&spb.Status{Code: int32(codes.FailedPrecondition), Message: "Insufficient reserved capacity"},
			wantStanding{schema.SliceDead, schema.ErrorReservation, "Insufficient"},
		},
		"name is taken": {
			&spb.Status{Code: int32(codes.AlreadyExists), Message: "node one exists"},
			wantStanding{schema.SliceDead, schema.ErrorConflict, "node one exists"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := queuedOf(t, tpuSpec("one", queuedSpec))
			q.State = &tpuapi.QueuedResourceState{
				State:     tpuapi.QueuedResourceState_FAILED,
				StateData: &tpuapi.QueuedResourceState_FailedData_{FailedData: &tpuapi.QueuedResourceState_FailedData{Error: test.err}},
			}
			test.want.check(t, listOne(t, nil, q))
		})
	}
}

func TestQueuedResourceSuspendedByAUser(t *testing.T) {
	q := queuedOf(t, tpuSpec("one", queuedSpec))
	q.State = &tpuapi.QueuedResourceState{State: tpuapi.QueuedResourceState_SUSPENDED, StateInitiator: tpuapi.QueuedResourceState_USER}
	wantStanding{schema.SliceDead, "", "by a user"}.check(t, listOne(t, nil, q))
}

// What is going of a queued resource that waits is both: its node may be there
// for a while longer, or it may be the other way round.
func TestSliceIsDeletingUntilNothingIsLeft(t *testing.T) {
	spec := tpuSpec("one", queuedSpec)
	deleting := wantStanding{phase: schema.SliceDeleting}
	n, q := nodeOf(t, spec), queuedOf(t, spec)
	n.State, q.State.State = tpuapi.Node_DELETING, tpuapi.QueuedResourceState_DELETING
	deleting.check(t, listOne(t, n, q))
	deleting.check(t, listOne(t, nil, q))
	deleting.check(t, listOne(t, n, nil))
	q.State.State = tpuapi.QueuedResourceState_ACTIVE
	deleting.check(t, listOne(t, n, q))
	// What holds quota after its node has to be deleted, too.
	q.State.State = tpuapi.QueuedResourceState_SUSPENDED
	wantStanding{schema.SliceDead, schema.ErrorPreempted, "SUSPENDED"}.check(t, listOne(t, n, q))
}

// A node that was created answers without a health, and with one that says
// nothing good it lives nevertheless.
func TestHealthIsNotLife(t *testing.T) {
	for health := range tpuapi.Node_Health_name {
		n := nodeOf(t, tpuSpec("one"))
		n.Health = tpuapi.Node_Health(health)
		wantStanding{phase: schema.SliceReady}.check(t, listOne(t, n, nil))
	}
}

// A queued resource of other nodes that has a node's name has not its fate.
func TestQueuedResourceOfOthers(t *testing.T) {
	for name, change := range map[string]func(*tpuapi.QueuedResource_Tpu){
		"another node":  func(q *tpuapi.QueuedResource_Tpu) { q.NodeSpec[0].NodeId = "two" },
		"several nodes": func(q *tpuapi.QueuedResource_Tpu) { q.NodeSpec = append(q.NodeSpec, q.NodeSpec[0]) },
		"many nodes": func(q *tpuapi.QueuedResource_Tpu) {
			q.NodeSpec[0].MultiNodeParams = &tpuapi.QueuedResource_Tpu_NodeSpec_MultiNodeParams{NodeCount: 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := queuedOf(t, tpuSpec("one"))
			change(q.GetTpu())
			q.State.State = tpuapi.QueuedResourceState_FAILED
			wantStanding{phase: schema.SliceReady}.check(t, listOne(t, nodeOf(t, tpuSpec("one")), q))
		})
	}
}
