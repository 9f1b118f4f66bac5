package tpu

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Update changes exactly what differs, in one call, and records the new spec
// with it. Labels and tags of other people's making stay.
func (t *Engine) Update(ctx context.Context, r engine.Order) (string, error) {
	at := engine.Place{Engine: schema.EngineTPU, Zone: r.Spec.Zone, Name: r.Spec.Name}
	s, err := t.lookup(ctx, at)
	switch {
	case err != nil:
		return "", err
	case s == nil:
		return "", apierror.Errorf(schema.ErrorUnavailable, "it is not there")
	}
	if err := s.mine(r.Spec.Stack); err != nil {
		return "", err
	}
	was, err := s.marks().Spec()
	switch {
	case err != nil:
		return "", apierror.Errorf(schema.ErrorConflict, "%w; correct that, or delete the slice", err)
	case was.Fixed() != r.Spec.Fixed():
		return "", apierror.Errorf(schema.ErrorConflict, "the slice was made otherwise; delete it first")
	case s.node == nil:
		return "", apierror.Errorf(schema.ErrorUnavailable, "it waits in the queue; it is changed once its node is there")
	}
	node, mask, err := t.change(s.node, was, r.Spec)
	if err != nil || len(mask) == 0 {
		return "", err
	}
	operation, err := invoke(ctx, call{"update node", "node.name", node.GetName()}, t.API.UpdateNode, &tpuapi.UpdateNodeRequest{
		UpdateMask: &fieldmaskpb.FieldMask{Paths: mask}, Node: node,
	})
	return operation.GetName(), err
}

// change is a node with what is to be changed of it, and the names of that.
func (t *Engine) change(n *tpuapi.Node, was, spec schema.SliceSpec) (*tpuapi.Node, []string, error) {
	changed := &tpuapi.Node{Name: n.GetName()}
	var mask []string
	if labels := mark.Relabel(n.GetLabels(), mark.Labels(was), mark.Labels(spec)); !maps.Equal(labels, n.GetLabels()) {
		changed.Labels = labels
		mask = append(mask, "labels")
	}
	if tags := mark.Retag(n.GetTags(), mark.SplitList(was.Cloud.Live.Tags), mark.SplitList(spec.Cloud.Live.Tags)); !slices.Equal(tags, n.GetTags()) {
		changed.Tags = tags
		mask = append(mask, "tags")
	}
	if external := !spec.Cloud.Live.InternalIPs; external != n.GetNetworkConfig().GetEnableExternalIps() {
		changed.NetworkConfig = &tpuapi.NetworkConfig{EnableExternalIps: external}
		mask = append(mask, "network_config.enable_external_ips")
	}
	text, err := mark.Encode(spec)
	if err != nil {
		return nil, nil, err
	}
	if n.GetMetadata()[mark.SpecKey] != text {
		changed.Metadata = maps.Clone(n.GetMetadata())
		changed.Metadata[mark.SpecKey] = text
		mask = append(mask, "metadata")
	}
	return changed, mask, nil
}
