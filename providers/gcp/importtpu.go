package gcp

import (
	"context"
	"fmt"
	"maps"
	"path"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// candidate reads a node, or the node of a queued resource.
func (t *tpu) candidate(ctx context.Context, to target, spec schema.SliceSpec) (*found, error) {
	s, err := t.look(ctx, to.place)
	if err != nil {
		return nil, err
	}
	if err := importable(s, to); err != nil {
		return nil, err
	}
	n := s.node
	preemptible := n.GetSchedulingConfig().GetSpot() || n.GetSchedulingConfig().GetPreemptible() ||
		s.queued.GetSpot() != nil || s.queued.GetBestEffort() != nil
	is := s.standing(preemptible)
	f := &found{
		marks:    s.marks(),
		status:   schema.SliceStatus{Phase: is.phase, Reason: is.reason, Cause: is.cause, CreatedAt: s.createdAt()},
		live:     liveOf(spec.Cloud.Live, n.GetLabels(), n.GetTags(), n.GetNetworkConfig().GetEnableExternalIps()),
		metadata: n.GetMetadata(),
		mark: func(ctx context.Context, labels, metadata map[string]string) error {
			return t.mark(ctx, n, labels, metadata)
		},
	}
	f.compareNode(n, spec, preemptible)
	return f, nil
}

// importable refuses what has no node to be marked, or one whose queued resource
// would be left behind when the slice is deleted by its name.
func importable(s *tpuSlice, to target) error {
	switch {
	case s == nil && to.queued:
		return failf(schema.ErrorInvalid, "there is no queued resource %s in %s", to.name, to.zone)
	case s == nil:
		return failf(schema.ErrorInvalid, "there is no node %s in %s", to.name, to.zone)
	case to.queued && s.queued == nil:
		return failf(schema.ErrorInvalid, "there is no queued resource %s in %s, though a node of that name", to.name, to.zone)
	}
	if s.queued != nil {
		specs := s.queued.GetTpu().GetNodeSpec()
		if len(specs) != 1 || specs[0].GetMultiNodeParams() != nil {
			return failf(schema.ErrorInvalid, "the queued resource makes several nodes, and a slice is one: it cannot be imported")
		}
		if id := specs[0].GetNodeId(); id != to.name {
			return namedOtherwise(id, to.name)
		}
	}
	if s.node == nil {
		return failf(schema.ErrorConflict, "its queued resource is %s and has no node yet, which is what is marked: import it once it has", s.queued.GetState().GetState())
	}
	if of := s.node.GetQueuedResource(); of != "" && path.Base(of) != to.name {
		return namedOtherwise(to.name, path.Base(of))
	}
	return nil
}

func namedOtherwise(node, queued string) error {
	return failf(schema.ErrorInvalid, "the node %s was made by the queued resource %s, and fray keeps the two under one name, by which it deletes them: "+
		"this one cannot be imported; let fray make its own and delete it", node, queued)
}

// compareNode finds the differences between a node and what is declared.
func (f *found) compareNode(n *tpuapi.Node, spec schema.SliceSpec, preemptible bool) {
	f.differs("type", nodeType(n), spec.TPU)
	f.differs("provisioning", tierOf(preemptible), tierOf(spec.Preemptible))
	if n.GetSchedulingConfig().GetReserved() != (spec.Cloud.Provisioning == schema.ProvisioningReserved) && !preemptible {
		f.differs("capacity", reservedOr(n.GetSchedulingConfig().GetReserved()), reservedOr(!n.GetSchedulingConfig().GetReserved()))
	}
	f.differsIfStated("runtime version", n.GetRuntimeVersion(), spec.Cloud.RuntimeVersion)
	f.differsIfStated("network", n.GetNetworkConfig().GetNetwork(), spec.Cloud.Network)
	f.differsIfStated("subnetwork", n.GetNetworkConfig().GetSubnetwork(), spec.Cloud.Subnetwork)
	f.differsIfStated("service account", n.GetServiceAccount().GetEmail(), spec.Cloud.ServiceAccount)
	for _, disk := range split(spec.Cloud.Disks) {
		if !hasDisk(n, disk) {
			f.differences = append(f.differences, fmt.Sprintf("the disk %s is not attached", disk))
		}
	}
}

func hasDisk(n *tpuapi.Node, disk string) bool {
	for _, each := range n.GetDataDisks() {
		name := path.Base(each.GetSourceDisk())
		if each.GetMode() == tpuapi.AttachedDisk_READ_ONLY {
			name += ":ro"
		}
		if name == path.Base(disk) {
			return true
		}
	}
	return false
}

func tierOf(preemptible bool) string {
	if preemptible {
		return "preemptible"
	}
	return "not preemptible"
}

func reservedOr(reserved bool) string {
	if reserved {
		return "reserved"
	}
	return "not reserved"
}

// nodeType is a node's TPU type as fray writes it, also of one that was asked
// for by its topology.
func nodeType(n *tpuapi.Node) string {
	if shape, err := schema.ParseAccelerator(n.GetAcceleratorType()); err == nil {
		return shape.Type
	}
	generation := ""
	switch n.GetAcceleratorConfig().GetType() {
	case tpuapi.AcceleratorConfig_V2:
		generation = "v2"
	case tpuapi.AcceleratorConfig_V3:
		generation = "v3"
	case tpuapi.AcceleratorConfig_V4:
		generation = "v4"
	case tpuapi.AcceleratorConfig_V5LITE_POD:
		generation = "v5litepod"
	case tpuapi.AcceleratorConfig_V5P:
		generation = "v5p"
	case tpuapi.AcceleratorConfig_V6E:
		generation = "v6e"
	case tpuapi.AcceleratorConfig_TYPE_UNSPECIFIED:
	}
	for _, offer := range schema.Offers(schema.AcceleratorQuery{Provider: schema.ProviderGCP, Generation: generation}) {
		if generation != "" && offer.Topology == n.GetAcceleratorConfig().GetTopology() {
			return offer.Type
		}
	}
	return n.GetAcceleratorType()
}

// mark gives a node labels and metadata in one call: a node with one and not the
// other would be nobody's or everybody's.
func (t *tpu) mark(ctx context.Context, n *tpuapi.Node, labels, metadata map[string]string) error {
	marked := &tpuapi.Node{Name: n.GetName(), Labels: map[string]string{}, Metadata: map[string]string{}}
	maps.Copy(marked.Labels, n.GetLabels())
	maps.Copy(marked.Labels, labels)
	maps.Copy(marked.Metadata, n.GetMetadata())
	maps.Copy(marked.Metadata, metadata)
	begun, err := invoke(ctx, call{"update node", "node.name", n.GetName()}, t.api.UpdateNode, &tpuapi.UpdateNodeRequest{
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels", "metadata"}}, Node: marked,
	})
	if err != nil || begun.GetDone() {
		return err
	}
	operation := begun.GetName()
	return settled(ctx, t.reads, func() (bool, error) {
		var err error
		operation, err = t.poll(ctx, order{}, operation)
		return operation == "", err
	})
}
