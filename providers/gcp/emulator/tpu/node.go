package tpu

import (
	"context"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// preemptibleLife is after how long a preemptible node ends; a spot one has no
// such cap.
const preemptibleLife = 24 * time.Hour

// ListNodes lists the nodes of a zone or, for "-", of all.
func (s *service) ListNodes(_ context.Context, r *tpuapi.ListNodesRequest) (*tpuapi.ListNodesResponse, error) {
	parent, p, err := s.list(r)
	if err != nil {
		return nil, err
	}
	groups := s.cloud.Groups(parent.project, cloud.KindNode, wildcard(parent.zone))
	page, next := cut(p, groups, func(g *cloud.Group) cloud.Key { return g.Key })
	response := &tpuapi.ListNodesResponse{
		Nodes: make([]*tpuapi.Node, len(page)), NextPageToken: next, Unreachable: p.locations(parent.project),
	}
	for i, g := range page {
		response.Nodes[i] = s.shown.node(g)
	}
	response.Nodes, response.NextPageToken = s.nodes.Page(response.Nodes, next, p.after == nil)
	return response, nil
}

// GetNode shows a node.
func (s *service) GetNode(_ context.Context, r *tpuapi.GetNodeRequest) (*tpuapi.Node, error) {
	n, err := s.resource(r.GetName(), "nodes")
	if err != nil {
		return nil, err
	}
	g, ok := s.cloud.Group(n.key(cloud.KindNode))
	if !ok {
		return nil, statusOf(notFound(r.GetName()))
	}
	return s.shown.node(g), nil
}

// CreateNode checks all that can be wrong with a node and asks the model for it.
func (s *service) CreateNode(_ context.Context, r *tpuapi.CreateNodeRequest) (*longrunningpb.Operation, error) {
	parent, err := s.parent(r.GetParent(), false)
	if err != nil {
		return nil, err
	}
	parent.id = r.GetNodeId()
	spec, err := s.nodeSpec(parent, r.GetNode())
	if err != nil {
		return nil, err
	}
	return s.operations.once("CreateNode", r.GetParent(), r.GetRequestId(), func() (cloud.Operation, error) { return s.cloud.Allocate(spec) })
}

// nodeSpec is what a node asks of the model.
func (s *service) nodeSpec(n name, node *tpuapi.Node) (cloud.Spec, error) {
	if err := checkID(n.id); err != nil {
		return cloud.Spec{}, err
	}
	shape, err := s.checkNode(n, node)
	if err != nil {
		return cloud.Spec{}, err
	}
	kept := proto.CloneOf(node)
	kept.AcceleratorType = shape.Type
	spec := cloud.Spec{
		Key: n.key(cloud.KindNode), Type: shape.Generation, Units: shape.Chips, Machines: shape.Hosts,
		AcceleratorType: shape.Type, RuntimeVersion: node.GetRuntimeVersion(), Tier: cloud.TierOnDemand,
		Labels: kept.GetLabels(), Metadata: kept.GetMetadata(), ServiceAccount: node.GetServiceAccount().GetEmail(),
		External: node.GetNetworkConfig().GetEnableExternalIps(), Changed: s.shown.changed,
	}
	switch schedule := node.GetSchedulingConfig(); {
	case schedule.GetReserved():
		spec.Tier = cloud.TierReserved
	case schedule.GetPreemptible():
		spec.Tier, spec.MaxRun = cloud.TierSpot, preemptibleLife
	case schedule.GetSpot():
		spec.Tier = cloud.TierSpot
	}
	spec.Detail = kept
	return spec, nil
}

// DeleteNode deletes a node in whatever state. The operation answers Empty.
func (s *service) DeleteNode(_ context.Context, r *tpuapi.DeleteNodeRequest) (*longrunningpb.Operation, error) {
	return s.actOn(r.GetName(), s.cloud.Delete)
}

// StopNode stops a ready node of one host; the service stops no other.
func (s *service) StopNode(_ context.Context, r *tpuapi.StopNodeRequest) (*longrunningpb.Operation, error) {
	return s.actOn(r.GetName(), func(k cloud.Key) (cloud.Operation, error) {
		if g, ok := s.cloud.Group(k); ok && len(g.Hosts) > 1 {
			return cloud.Operation{}, badRequest("Stop is not supported for TPU Pods: %s has %d hosts.", r.GetName(), len(g.Hosts))
		}
		return s.cloud.Stop(k)
	})
}

// StartNode starts a stopped one.
func (s *service) StartNode(_ context.Context, r *tpuapi.StartNodeRequest) (*longrunningpb.Operation, error) {
	return s.actOn(r.GetName(), s.cloud.Start)
}

func (s *service) actOn(text string, act func(cloud.Key) (cloud.Operation, error)) (*longrunningpb.Operation, error) {
	n, err := s.resource(text, "nodes")
	if err != nil {
		return nil, err
	}
	return s.operations.carryOut(func() (cloud.Operation, error) { return act(n.key(cloud.KindNode)) })
}

// UpdateNode changes what the API can change of a ready or stopped node.
func (s *service) UpdateNode(_ context.Context, r *tpuapi.UpdateNodeRequest) (*longrunningpb.Operation, error) {
	paths, want := r.GetUpdateMask().GetPaths(), r.GetNode()
	if len(paths) == 0 {
		return nil, invalid("update_mask is required.")
	}
	for _, path := range paths {
		switch path {
		case "description", "labels", "metadata", "tags", "network_config.enable_external_ips":
		default:
			return nil, invalid("Field %q of a node cannot be updated: update_mask may name description, tags, labels, metadata and"+
				" network_config.enable_external_ips.", path)
		}
	}
	if err := checkLabels(want.GetLabels()); err != nil {
		return nil, err
	}
	return s.actOn(want.GetName(), func(k cloud.Key) (cloud.Operation, error) {
		if g, ok := s.cloud.Group(k); ok && !g.Cause.Recoverable() {
			return cloud.Operation{}, badRequest("The operation is not supported while in state %s", g.State)
		}
		return s.cloud.Update(k, func(spec *cloud.Spec) {
			kept := proto.CloneOf(spec.Detail.(*tpuapi.Node))
			for _, path := range paths {
				update(kept, want, path)
			}
			spec.Labels, spec.Metadata, spec.External = kept.GetLabels(), kept.GetMetadata(), kept.GetNetworkConfig().GetEnableExternalIps()
			spec.Detail = kept
		})
	})
}

// update takes one path of a mask over from what is wanted.
func update(node, want *tpuapi.Node, path string) {
	want = proto.CloneOf(want)
	switch path {
	case "description":
		node.Description = want.GetDescription()
	case "labels":
		node.Labels = want.GetLabels()
	case "metadata":
		node.Metadata = want.GetMetadata()
	case "tags":
		node.Tags = want.GetTags()
	case "network_config.enable_external_ips":
		if node.GetNetworkConfig() == nil {
			node.NetworkConfig = &tpuapi.NetworkConfig{}
		}
		node.NetworkConfig.EnableExternalIps = want.GetNetworkConfig().GetEnableExternalIps()
	}
}
