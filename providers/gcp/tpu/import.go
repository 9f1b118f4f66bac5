package tpu

import (
	"context"
	"fmt"
	"maps"
	"path"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Candidate reads a node, or the node of a queued resource.
func (t *Engine) Candidate(ctx context.Context, to engine.Target, spec schema.SliceSpec) (*engine.Found, error) {
	s, err := t.lookup(ctx, to.Place)
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
	f := &engine.Found{
		Marks:    s.marks(),
		Status:   schema.SliceStatus{Phase: is.phase, Reason: is.reason, Cause: is.cause, CreatedAt: s.createdAt()},
		Live:     engine.LiveOf(spec.Cloud.Live, n.GetLabels(), n.GetTags(), n.GetNetworkConfig().GetEnableExternalIps()),
		Metadata: n.GetMetadata(),
		Mark: func(ctx context.Context, labels, metadata map[string]string) error {
			return t.mark(ctx, n, labels, metadata)
		},
	}
	compareNode(f, n, spec, preemptible)
	return f, nil
}

// importable rejects what has no node to be marked, or one whose queued resource
// would be left behind when the slice is deleted by its name.
func importable(s *slice, to engine.Target) error {
	switch {
	case s == nil && to.Queued:
		return apierror.Errorf(schema.ErrorInvalid, "there is no queued resource %s in %s", to.Name, to.Zone)
	case s == nil:
		return apierror.Errorf(schema.ErrorInvalid, "there is no node %s in %s", to.Name, to.Zone)
	case to.Queued && s.queued == nil:
		return apierror.Errorf(schema.ErrorInvalid, "there is no queued resource %s in %s, though a node of that name", to.Name, to.Zone)
	}
	if s.queued != nil {
		specs := s.queued.GetTpu().GetNodeSpec()
		if len(specs) != 1 || specs[0].GetMultiNodeParams() != nil {
			return apierror.Errorf(schema.ErrorInvalid, "the queued resource makes several nodes, and a slice is one: it cannot be imported")
		}
		if id := specs[0].GetNodeId(); id != to.Name {
			return namedOtherwise(id, to.Name)
		}
	}
	if s.node == nil {
		return apierror.Errorf(schema.ErrorConflict, "its queued resource is %s and has no node yet, which is what is marked: import it once it has", s.queued.GetState().GetState())
	}
	if of := s.node.GetQueuedResource(); of != "" && path.Base(of) != to.Name {
		return namedOtherwise(to.Name, path.Base(of))
	}
	return nil
}

func namedOtherwise(node, queued string) error {
	return apierror.Errorf(schema.ErrorInvalid, "the node %s was made by the queued resource %s, and fray keeps the two under one name, by which it deletes them: "+
		"this one cannot be imported; let fray make its own and delete it", node, queued)
}

// compareNode finds the differences between a node and what is declared.
func compareNode(f *engine.Found, n *tpuapi.Node, spec schema.SliceSpec, preemptible bool) {
	f.Differs("type", nodeType(n), spec.TPU)
	f.Differs("provisioning", engine.TierOf(preemptible), engine.TierOf(spec.Preemptible))
	if n.GetSchedulingConfig().GetReserved() != (spec.Cloud.Provisioning == schema.ProvisioningReserved) && !preemptible {
		f.Differs("capacity", reservedOr(n.GetSchedulingConfig().GetReserved()), reservedOr(!n.GetSchedulingConfig().GetReserved()))
	}
	f.DiffersIfStated("runtime version", n.GetRuntimeVersion(), spec.Cloud.RuntimeVersion)
	f.DiffersIfStated("network", n.GetNetworkConfig().GetNetwork(), spec.Cloud.Network)
	f.DiffersIfStated("subnetwork", n.GetNetworkConfig().GetSubnetwork(), spec.Cloud.Subnetwork)
	f.DiffersIfStated("service account", n.GetServiceAccount().GetEmail(), spec.Cloud.ServiceAccount)
	for _, disk := range mark.SplitList(spec.Cloud.Disks) {
		if !hasDisk(n, disk) {
			f.Differences = append(f.Differences, fmt.Sprintf("the disk %s is not attached", disk))
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

func reservedOr(reserved bool) string {
	if reserved {
		return "reserved"
	}
	return "not reserved"
}

// nodeType is a node's TPU type as fray writes it, also of one that was asked
// for by its topology.
func nodeType(n *tpuapi.Node) string {
	if shape, err := accelerators.Parse(n.GetAcceleratorType()); err == nil {
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
	for _, offer := range accelerators.Offers(accelerators.Query{Provider: schema.ProviderGCP, Generation: generation}) {
		if generation != "" && offer.Topology == n.GetAcceleratorConfig().GetTopology() {
			return offer.Type
		}
	}
	return n.GetAcceleratorType()
}

// mark gives a node labels and metadata in one call: a node with one and not the
// other would belong to no stack, or have no spec.
func (t *Engine) mark(ctx context.Context, n *tpuapi.Node, labels, metadata map[string]string) error {
	marked := &tpuapi.Node{Name: n.GetName(), Labels: map[string]string{}, Metadata: map[string]string{}}
	maps.Copy(marked.Labels, n.GetLabels())
	maps.Copy(marked.Labels, labels)
	maps.Copy(marked.Metadata, n.GetMetadata())
	maps.Copy(marked.Metadata, metadata)
	begun, err := invoke(ctx, call{"update node", "node.name", n.GetName()}, t.API.UpdateNode, &tpuapi.UpdateNodeRequest{
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels", "metadata"}}, Node: marked,
	})
	if err != nil || begun.GetDone() {
		return err
	}
	operation := begun.GetName()
	return engine.Settled(ctx, t.reads, func() (bool, error) {
		var err error
		operation, err = t.Poll(ctx, engine.Order{}, operation)
		return operation == "", err
	})
}
