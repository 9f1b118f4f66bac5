package gcp

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// update changes exactly what differs, in one call, and records the new spec
// with it. Labels and tags of other people's making stay.
func (t *tpu) update(ctx context.Context, r order) (string, error) {
	at := place{engine: schema.EngineTPU, zone: r.spec.Zone, name: r.spec.Name}
	s, err := t.look(ctx, at)
	switch {
	case err != nil:
		return "", err
	case s == nil:
		return "", failf(schema.ErrorUnavailable, "it is not there")
	}
	if err := s.mine(r.spec.Stack); err != nil {
		return "", err
	}
	was, err := s.marks().spec()
	switch {
	case err != nil:
		return "", failf(schema.ErrorConflict, "%w; mend that, or delete it", err)
	case was.Fixed() != r.spec.Fixed():
		return "", failf(schema.ErrorConflict, "the slice was made otherwise; delete it first")
	case s.node == nil:
		return "", failf(schema.ErrorUnavailable, "it waits in the queue; it is changed once its node is there")
	}
	node, mask, err := t.change(s.node, was, r.spec)
	if err != nil || len(mask) == 0 {
		return "", err
	}
	operation, err := invoke(ctx, call{"update node", "node.name", node.GetName()}, t.api.UpdateNode, &tpuapi.UpdateNodeRequest{
		UpdateMask: &fieldmaskpb.FieldMask{Paths: mask}, Node: node,
	})
	return operation.GetName(), err
}

// change is a node with what is to be changed of it, and the names of that.
func (t *tpu) change(n *tpuapi.Node, was, spec schema.SliceSpec) (*tpuapi.Node, []string, error) {
	changed := &tpuapi.Node{Name: n.GetName()}
	var mask []string
	if labels := relabelled(n.GetLabels(), labelsOf(was), labelsOf(spec)); !maps.Equal(labels, n.GetLabels()) {
		changed.Labels = labels
		mask = append(mask, "labels")
	}
	if tags := retagged(n.GetTags(), split(was.Cloud.Live.Tags), split(spec.Cloud.Live.Tags)); !slices.Equal(tags, n.GetTags()) {
		changed.Tags = tags
		mask = append(mask, "tags")
	}
	if external := !spec.Cloud.Live.InternalIPs; external != n.GetNetworkConfig().GetEnableExternalIps() {
		changed.NetworkConfig = &tpuapi.NetworkConfig{EnableExternalIps: external}
		mask = append(mask, "network_config.enable_external_ips")
	}
	text, err := encodeSpec(spec)
	if err != nil {
		return nil, nil, err
	}
	if n.GetMetadata()[specKey] != text {
		changed.Metadata = maps.Clone(n.GetMetadata())
		changed.Metadata[specKey] = text
		mask = append(mask, "metadata")
	}
	return changed, mask, nil
}

func relabelled(labels, was, want map[string]string) map[string]string {
	next := maps.Clone(labels)
	for key := range was {
		delete(next, key)
	}
	maps.Copy(next, want)
	return next
}

// retagged keeps the order of the tags that stay.
func retagged(tags, was, want []string) []string {
	next := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		return slices.Contains(was, tag) && !slices.Contains(want, tag)
	})
	for _, tag := range want {
		if !slices.Contains(next, tag) {
			next = append(next, tag)
		}
	}
	return next
}
