package tpu

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// slice is what there is of one slice; at least one of the two.
type slice struct {
	at     engine.Place
	node   *tpuapi.Node
	queued *tpuapi.QueuedResource
}

// lookup reads what there is of a slice now, nil for nothing.
func (t *Engine) lookup(ctx context.Context, at engine.Place) (*slice, error) {
	// The queued resource first, as in list: it is there before its node.
	q, err := t.getQueued(ctx, at)
	if err != nil {
		return nil, err
	}
	n, err := t.getNode(ctx, at)
	if err != nil || n == nil && q == nil {
		return nil, err
	}
	s := &slice{at: at, node: n, queued: q}
	s.part()
	return s, nil
}

// part leaves a queued resource aside that asks for other nodes, or more of them,
// than the one of its name: its fate is not the node's.
func (s *slice) part() (apart bool) {
	if s.node != nil && s.queued != nil && s.asked() == nil {
		s.queued, apart = nil, true
	}
	return apart
}

// asked is the node of its own name that the queued resource asks for, nil if it
// asks for others.
func (s *slice) asked() *tpuapi.Node {
	specs := s.queued.GetTpu().GetNodeSpec()
	if len(specs) != 1 || specs[0].GetMultiNodeParams() != nil {
		return nil
	}
	if id := specs[0].GetNodeId(); id != "" && id != s.at.Name {
		return nil
	}
	return specs[0].GetNode()
}

// marks are those of the node, which are changed in place, and before there is
// one those that it will have.
func (s *slice) marks() mark.Marks {
	n := s.node
	if n == nil {
		n = s.asked()
	}
	return mark.Marks{Name: s.at.Name, Zone: s.at.Zone, Labels: n.GetLabels(), Text: n.GetMetadata()[mark.SpecKey]}
}

func (s *slice) createdAt() time.Time {
	if s.queued.GetCreateTime() != nil {
		return s.queued.GetCreateTime().AsTime()
	}
	if s.node.GetCreateTime() != nil {
		return s.node.GetCreateTime().AsTime()
	}
	return time.Time{}
}

// standing is how a slice, or one of its parts, stands.
type standing struct {
	phase  schema.SlicePhase
	reason string
	cause  schema.ErrorKind
	queued bool // it waits for its turn, without machines
}

func (s *slice) deleting() bool { return s.standing(false).phase == schema.SliceDeleting }

// standing is that of both parts: what is going is going, what one of them is
// dead of the slice is dead of, and else the node knows.
func (s *slice) standing(preemptible bool) standing {
	if s.queued == nil {
		return nodeStanding(s.node, preemptible)
	}
	queued := queuedStanding(s.queued, preemptible)
	if queued.phase == schema.SliceDeleting || queued.phase == schema.SliceDead {
		return queued
	}
	if s.node != nil {
		return nodeStanding(s.node, preemptible)
	}
	if queued.phase == schema.SliceReady {
		// It was listed before the nodes, so that its node is not just late.
		return dead(fmt.Sprintf("its queued resource is %s and its node is gone", s.queued.GetState().GetState()), preemptible)
	}
	return queued
}

// dead is a state without a stated reason: what is preemptible counts as preempted.
func dead(reason string, preemptible bool) standing {
	s := standing{phase: schema.SliceDead, reason: reason}
	if preemptible {
		s.cause = schema.ErrorPreempted
	}
	return s
}

// nodeStanding: a node is alive in five states. What was preempted is in any
// other, not always in PREEMPTED, and holds quota until it is deleted.
func nodeStanding(n *tpuapi.Node, preemptible bool) standing {
	state := n.GetState()
	reason := fmt.Sprintf("its node is %s", state)
	if why := n.GetHealthDescription(); why != "" {
		reason += ": " + why
	}
	switch state {
	case tpuapi.Node_READY:
		// The service's health is of its own making; agents report whether hosts live.
		return standing{phase: schema.SliceReady}
	case tpuapi.Node_REPAIRING, tpuapi.Node_RESTARTING:
		return standing{phase: schema.SliceReady, reason: reason}
	case tpuapi.Node_CREATING:
		return standing{phase: schema.SliceCreating}
	case tpuapi.Node_STARTING:
		return standing{phase: schema.SliceCreating, reason: reason}
	case tpuapi.Node_DELETING:
		return standing{phase: schema.SliceDeleting}
	case tpuapi.Node_PREEMPTED:
		return standing{phase: schema.SliceDead, reason: reason, cause: schema.ErrorPreempted}
	case tpuapi.Node_TERMINATED, tpuapi.Node_STOPPED, tpuapi.Node_STOPPING:
		return dead(reason, preemptible)
	case tpuapi.Node_REIMAGING, tpuapi.Node_HIDING, tpuapi.Node_HIDDEN, tpuapi.Node_UNHIDING, tpuapi.Node_UNKNOWN,
		tpuapi.Node_STATE_UNSPECIFIED: // none of which means that its machines are off
	}
	return dead(reason, false) // so does none that is newer than this program
}

// queuedStanding is a queued resource's without regard to its node.
func queuedStanding(q *tpuapi.QueuedResource, preemptible bool) standing {
	state := q.GetState().GetState()
	switch state {
	case tpuapi.QueuedResourceState_CREATING, tpuapi.QueuedResourceState_ACCEPTED,
		tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES, tpuapi.QueuedResourceState_STATE_UNSPECIFIED:
		return standing{phase: schema.SliceCreating, reason: fmt.Sprintf("waiting in the queue: %s", state), queued: true}
	case tpuapi.QueuedResourceState_PROVISIONING:
		return standing{phase: schema.SliceCreating, reason: "its turn has come: PROVISIONING"}
	case tpuapi.QueuedResourceState_ACTIVE, tpuapi.QueuedResourceState_SUSPENDING:
		return standing{phase: schema.SliceReady} // if it has its node
	case tpuapi.QueuedResourceState_DELETING:
		return standing{phase: schema.SliceDeleting}
	case tpuapi.QueuedResourceState_SUSPENDED:
		reason := "its queued resource is SUSPENDED"
		if q.GetState().GetStateInitiator() == tpuapi.QueuedResourceState_USER {
			return standing{phase: schema.SliceDead, reason: reason + " by a user"}
		}
		return dead(reason, preemptible)
	case tpuapi.QueuedResourceState_FAILED:
		return failedStanding(q)
	}
	return standing{phase: schema.SliceCreating, reason: fmt.Sprintf("waiting in the queue: %s", state), queued: true}
}

func failedStanding(q *tpuapi.QueuedResource) standing {
	failed := q.GetState().GetFailedData().GetError()
	if failed == nil {
		return standing{phase: schema.SliceDead, reason: "its queued resource has FAILED"}
	}
	err := &apierror.LateError{Err: status.ErrorProto(failed)}
	return standing{phase: schema.SliceDead, reason: "its queued resource has FAILED: " + err.Error(), cause: apierror.KindOf(err)}
}
