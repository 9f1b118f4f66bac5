package tpu

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// ListQueuedResources lists those of a zone or, for "-", of all. A queued
// resource has no labels of its own, only its nodes'.
func (s *service) ListQueuedResources(_ context.Context, r *tpuapi.ListQueuedResourcesRequest) (*tpuapi.ListQueuedResourcesResponse, error) {
	parent, p, err := s.list(r)
	if err != nil {
		return nil, err
	}
	requests := s.cloud.Requests(parent.project, wildcard(parent.zone))
	entries, next := cut(p, requests, func(r *cloud.Request) cloud.Key { return r.Key })
	response := &tpuapi.ListQueuedResourcesResponse{NextPageToken: next, Unreachable: p.locations(parent.project)}
	for _, r := range entries {
		if _, ours := r.Detail.(*tpuapi.QueuedResource); ours {
			response.QueuedResources = append(response.QueuedResources, queuedOf(r))
		}
	}
	response.QueuedResources, response.NextPageToken = s.requests.Page(response.QueuedResources, next, p.after == nil)
	return response, nil
}

// GetQueuedResource shows one.
func (s *service) GetQueuedResource(_ context.Context, r *tpuapi.GetQueuedResourceRequest) (*tpuapi.QueuedResource, error) {
	n, err := s.resource(r.GetName(), "queuedResources")
	if err != nil {
		return nil, err
	}
	request, ok := s.cloud.Request(n.key(cloud.KindQueued))
	if !ok {
		return nil, notFound(r.GetName())
	}
	return queuedOf(request), nil
}

// CreateQueuedResource queues a request for nodes.
func (s *service) CreateQueuedResource(_ context.Context, r *tpuapi.CreateQueuedResourceRequest) (*longrunningpb.Operation, error) {
	parent, err := s.parent(r.GetParent(), false)
	if err != nil {
		return nil, err
	}
	parent.id = r.GetQueuedResourceId()
	if err := checkID(parent.id); err != nil {
		return nil, err
	}
	want := r.GetQueuedResource()
	groups, err := s.queuedNodes(parent, want)
	if err != nil {
		return nil, err
	}
	spec := cloud.RequestSpec{Key: parent.key(cloud.KindQueued), Groups: groups, Detail: proto.CloneOf(want)}
	spec.ValidAfter, spec.ValidUntil = times(want.GetQueueingPolicy(), s.cloud.Clock().Now())
	return s.operations.once("CreateQueuedResource", r.GetParent(), r.GetRequestId(), func() (cloud.Operation, error) { return s.cloud.Enqueue(spec) })
}

// queuedNodes are the nodes that a queued resource asks for, in its tier.
func (s *service) queuedNodes(parent name, want *tpuapi.QueuedResource) ([]cloud.Spec, error) {
	if len(want.GetTpu().GetNodeSpec()) == 0 {
		return nil, invalid("tpu.node_spec is required.")
	}
	var all []cloud.Spec
	for _, spec := range want.GetTpu().GetNodeSpec() {
		if spec.GetParent() != "" && spec.GetParent() != parent.parent() {
			return nil, invalid("The parent %q of a node is not that of its queued resource.", spec.GetParent())
		}
		ids, err := nodeIDs(spec)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			node, err := s.nodeSpec(name{project: parent.project, zone: parent.zone, id: id}, spec.GetNode())
			if err != nil {
				return nil, err
			}
			setTier(&node, want)
			all = append(all, node)
		}
	}
	return all, nil
}

// nodeIDs are the names of one node_spec's nodes: one, or as many as a
// multi-slice has.
func nodeIDs(spec *tpuapi.QueuedResource_Tpu_NodeSpec) ([]string, error) {
	many := spec.GetMultiNodeParams()
	switch {
	case many == nil:
		return []string{spec.GetNodeId()}, nil
	case spec.GetNodeId() != "":
		return nil, invalid("Only one of node_id and multi_node_params may be set.")
	case many.GetNodeCount() < 2:
		return nil, invalid("multi_node_params.node_count must be at least 2.")
	}
	ids := make([]string, many.GetNodeCount())
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", many.GetNodeIdPrefix(), i)
	}
	return ids, nil
}

// setTier has a queued resource's tier decide; a node's own scheduling says the
// same or nothing.
func setTier(node *cloud.Spec, want *tpuapi.QueuedResource) {
	switch {
	case want.GetSpot() != nil:
		node.Tier = cloud.TierSpot
	case want.GetBestEffort() != nil:
		node.Tier, node.MaxRun = cloud.TierSpot, preemptibleLife
	case want.GetGuaranteed().GetReserved() || want.GetReservationName() != "":
		node.Tier = cloud.TierReserved
	case want.GetGuaranteed() != nil:
		node.Tier = cloud.TierOnDemand
	}
	detail := proto.CloneOf(node.Detail.(*tpuapi.Node))
	detail.SchedulingConfig = &tpuapi.SchedulingConfig{
		Preemptible: node.MaxRun > 0, Spot: node.Tier == cloud.TierSpot && node.MaxRun == 0, Reserved: node.Tier == cloud.TierReserved,
	}
	node.Detail = detail
}

// times are from when and until when a request may be provisioned.
func times(policy *tpuapi.QueuedResource_QueueingPolicy, now time.Time) (after, until time.Time) {
	switch c := policy.GetStartTimingConstraints().(type) {
	case *tpuapi.QueuedResource_QueueingPolicy_ValidUntilDuration:
		until = now.Add(c.ValidUntilDuration.AsDuration())
	case *tpuapi.QueuedResource_QueueingPolicy_ValidUntilTime:
		until = c.ValidUntilTime.AsTime()
	case *tpuapi.QueuedResource_QueueingPolicy_ValidAfterDuration:
		after = now.Add(c.ValidAfterDuration.AsDuration())
	case *tpuapi.QueuedResource_QueueingPolicy_ValidAfterTime:
		after = c.ValidAfterTime.AsTime()
	case *tpuapi.QueuedResource_QueueingPolicy_ValidInterval:
		after = c.ValidInterval.GetStartTime().AsTime()
		if end := c.ValidInterval.GetEndTime(); end != nil {
			until = end.AsTime()
		}
	}
	return after, until
}

// DeleteQueuedResource deletes a queued resource, with force also its nodes.
func (s *service) DeleteQueuedResource(_ context.Context, r *tpuapi.DeleteQueuedResourceRequest) (*longrunningpb.Operation, error) {
	return s.actOnQueued(r.GetName(), func(k cloud.Key) (cloud.Operation, error) { return s.cloud.DeleteRequest(k, r.GetForce()) })
}

// ResetQueuedResource queues one anew.
func (s *service) ResetQueuedResource(_ context.Context, r *tpuapi.ResetQueuedResourceRequest) (*longrunningpb.Operation, error) {
	return s.actOnQueued(r.GetName(), s.cloud.ResetRequest)
}

func (s *service) actOnQueued(text string, act func(cloud.Key) (cloud.Operation, error)) (*longrunningpb.Operation, error) {
	n, err := s.resource(text, "queuedResources")
	if err != nil {
		return nil, err
	}
	return s.operations.carryOut(func() (cloud.Operation, error) { return act(n.key(cloud.KindQueued)) })
}

// queuedOf is a request as the API shows it.
func queuedOf(r *cloud.Request) *tpuapi.QueuedResource {
	shown := proto.CloneOf(r.Detail.(*tpuapi.QueuedResource))
	shown.Name = name{project: r.Project, zone: r.Zone}.parent() + "/queuedResources/" + r.Name
	shown.CreateTime = timestamppb.New(r.Created)
	shown.State = &tpuapi.QueuedResourceState{
		State:          tpuapi.QueuedResourceState_State(tpuapi.QueuedResourceState_State_value[string(r.State)]),
		StateInitiator: tpuapi.QueuedResourceState_SERVICE,
	}
	if r.ByUser {
		shown.State.StateInitiator = tpuapi.QueuedResourceState_USER
	}
	setStateData(shown.State, r)
	return shown
}

func setStateData(s *tpuapi.QueuedResourceState, r *cloud.Request) {
	switch r.State {
	case cloud.RequestCreating:
		s.StateData = &tpuapi.QueuedResourceState_CreatingData_{CreatingData: &tpuapi.QueuedResourceState_CreatingData{}}
	case cloud.RequestAccepted:
		s.StateData = &tpuapi.QueuedResourceState_AcceptedData_{AcceptedData: &tpuapi.QueuedResourceState_AcceptedData{}}
	case cloud.RequestProvisioning:
		s.StateData = &tpuapi.QueuedResourceState_ProvisioningData_{ProvisioningData: &tpuapi.QueuedResourceState_ProvisioningData{}}
	case cloud.RequestActive:
		s.StateData = &tpuapi.QueuedResourceState_ActiveData_{ActiveData: &tpuapi.QueuedResourceState_ActiveData{}}
	case cloud.RequestSuspending:
		s.StateData = &tpuapi.QueuedResourceState_SuspendingData_{SuspendingData: &tpuapi.QueuedResourceState_SuspendingData{}}
	case cloud.RequestSuspended:
		s.StateData = &tpuapi.QueuedResourceState_SuspendedData_{SuspendedData: &tpuapi.QueuedResourceState_SuspendedData{}}
	case cloud.RequestDeleting:
		s.StateData = &tpuapi.QueuedResourceState_DeletingData_{DeletingData: &tpuapi.QueuedResourceState_DeletingData{}}
	case cloud.RequestFailed:
		failed := &tpuapi.QueuedResourceState_FailedData{}
		if r.Err != nil {
			failed.Error = &rpcstatus.Status{Code: int32(codeOf(r.Err.Reason)), Message: r.Err.Message}
		}
		s.StateData = &tpuapi.QueuedResourceState_FailedData_{FailedData: failed}
	case cloud.RequestWaiting, cloud.RequestGone: // a waiting one has no data of its own
	}
}
