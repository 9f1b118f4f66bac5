package gce

import (
	"context"
	"errors"
	"maps"
	"slices"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/google/uuid"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Update changes the first attribute that differs on all machines of a slice, and
// once that is done, by poll, the next. The record of the new spec comes last, so
// that a change that was cut short still counts as not made.
func (g *Engine) Update(ctx context.Context, r engine.Order) (string, error) {
	if r.Spec.Hosts > 1 {
		return g.updateGroup(ctx, r.Spec)
	}
	machine, found, err := g.findInstance(ctx, r.Spec.Zone, r.Spec.Name)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", apierror.Errorf(schema.ErrorUnavailable, "it is not there")
	}
	was, err := changeable(instanceMarks(machine), r.Spec)
	if err != nil {
		return "", err
	}
	op, err := g.change(ctx, machine, was, r.Spec)
	if op == nil || err != nil {
		return "", err
	}
	return step(stageUpdate, op), nil
}

// changeable checks that a slice is there of which spec differs in nothing but
// what can be changed, and returns what is recorded of it.
func changeable(there mark.Marks, spec schema.SliceSpec) (schema.SliceSpec, error) {
	if err := mine(there, spec.Stack); err != nil {
		return schema.SliceSpec{}, err
	}
	was, err := there.Spec()
	switch {
	case err != nil:
		return was, apierror.Errorf(schema.ErrorConflict, "%w; correct that, or delete the slice", err)
	case was.Fixed() != spec.Fixed():
		return was, apierror.Errorf(schema.ErrorConflict, "the slice was made otherwise; delete it first")
	}
	return was, nil
}

// updateGroup changes all machines of a group, and then what the group states of
// machines to come, which is also where its spec is recorded.
func (g *Engine) updateGroup(ctx context.Context, spec schema.SliceSpec) (string, error) {
	template, found, err := g.findTemplate(ctx, spec.Name)
	if err != nil {
		return "", err
	}
	group, there, err := g.findGroup(ctx, spec.Zone, spec.Name)
	if err != nil {
		return "", err
	}
	if !found || !there {
		return "", apierror.Errorf(schema.ErrorUnavailable, "it is not there")
	}
	marks := templateMarks(template)
	config := group.GetAllInstancesConfig().GetProperties()
	if text := config.GetMetadata()[mark.KeySpec]; text != "" {
		marks.Text = text
	}
	was, err := changeable(marks, spec)
	if err != nil {
		return "", err
	}
	machines, err := g.membersOf(ctx, spec)
	if err != nil {
		return "", err
	}
	var last *computepb.Operation
	for _, machine := range machines {
		op, err := g.change(ctx, machine, was, spec)
		if err != nil {
			return "", err
		}
		if op != nil {
			last = op
		}
	}
	if last == nil {
		last, err = g.changeGroup(ctx, group, was, spec)
	}
	if last == nil || err != nil {
		return "", err
	}
	return step(stageUpdate, last), nil
}

// membersOf lists the machines of a group.
func (g *api) membersOf(ctx context.Context, spec schema.SliceSpec) ([]*computepb.Instance, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	it := g.clients.instances.List(bounded, &computepb.ListInstancesRequest{
		Project: g.project, Zone: spec.Zone, Filter: new("labels." + mark.SliceLabel + "=" + spec.Name),
	})
	var machines []*computepb.Instance
	for {
		machine, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return machines, nil
		}
		if err != nil {
			return nil, apierror.Interrupted(ctx, err)
		}
		if marks := instanceMarks(machine); marks.Owned(spec.Stack) && marks.Labels[mark.SliceLabel] == spec.Name && marks.Name != spec.Name {
			machines = append(machines, machine)
		}
	}
}

// change changes the first attribute of a machine that differs, nil if none does.
// Labels and tags of other people's making stay.
func (g *api) change(ctx context.Context, machine *computepb.Instance, was, spec schema.SliceSpec) (*computepb.Operation, error) {
	text, err := mark.Encode(spec)
	if err != nil {
		return nil, err
	}
	id := new(uuid.NewString())
	zone, name := spec.Zone, machine.GetName()
	if labels := mark.Relabel(machine.GetLabels(), mark.Labels(was), mark.Labels(spec)); !maps.Equal(labels, machine.GetLabels()) {
		return started(ask(ctx, "set labels", g.clients.instances.SetLabels, &computepb.SetLabelsInstanceRequest{
			Project: g.project, Zone: zone, Instance: name, RequestId: id,
			InstancesSetLabelsRequestResource: &computepb.InstancesSetLabelsRequest{Labels: labels, LabelFingerprint: machine.LabelFingerprint},
		}))
	}
	if tags := mark.Retag(machine.GetTags().GetItems(), mark.SplitList(was.Cloud.Live.Tags), mark.SplitList(spec.Cloud.Live.Tags)); !slices.Equal(tags, machine.GetTags().GetItems()) {
		return started(ask(ctx, "set tags", g.clients.instances.SetTags, &computepb.SetTagsInstanceRequest{
			Project: g.project, Zone: zone, Instance: name, RequestId: id,
			TagsResource: &computepb.Tags{Items: tags, Fingerprint: machine.GetTags().Fingerprint},
		}))
	}
	if op, err := g.changeAddress(ctx, machine, spec); op != nil || err != nil {
		return op, err
	}
	if metadataText(machine.GetMetadata(), mark.KeySpec) == text {
		return nil, nil
	}
	return started(ask(ctx, "set metadata", g.clients.instances.SetMetadata, &computepb.SetMetadataInstanceRequest{
		Project: g.project, Zone: zone, Instance: name, RequestId: id, MetadataResource: withSpec(machine.GetMetadata(), text),
	}))
}

// changeAddress gives a machine an external address, or takes it away.
func (g *api) changeAddress(ctx context.Context, machine *computepb.Instance, spec schema.SliceSpec) (*computepb.Operation, error) {
	if len(machine.GetNetworkInterfaces()) == 0 {
		return nil, nil
	}
	nic := machine.GetNetworkInterfaces()[0]
	access := nic.GetAccessConfigs()
	switch {
	case spec.Cloud.Live.InternalIPs && len(access) > 0:
		return started(ask(ctx, "take external address away", g.clients.instances.DeleteAccessConfig, &computepb.DeleteAccessConfigInstanceRequest{
			Project: g.project, Zone: spec.Zone, Instance: machine.GetName(), NetworkInterface: nic.GetName(), AccessConfig: access[0].GetName(),
			RequestId: new(uuid.NewString()),
		}))
	case !spec.Cloud.Live.InternalIPs && len(access) == 0:
		return started(ask(ctx, "add external address", g.clients.instances.AddAccessConfig, &computepb.AddAccessConfigInstanceRequest{
			Project: g.project, Zone: spec.Zone, Instance: machine.GetName(), NetworkInterface: nic.GetName(), AccessConfigResource: externalAccess(),
			RequestId: new(uuid.NewString()),
		}))
	}
	return nil, nil
}

// withSpec is a machine's metadata with another record in it: they are written
// whole, under the fingerprint of what was read.
func withSpec(was *computepb.Metadata, text string) *computepb.Metadata {
	m := proto.CloneOf(was)
	for _, item := range m.GetItems() {
		if item.GetKey() == mark.KeySpec {
			item.Value = &text
			return m
		}
	}
	m.Items = append(m.Items, &computepb.Items{Key: new(mark.KeySpec), Value: &text})
	return m
}

// changeGroup records a spec on its group, whose machines have it already.
func (g *api) changeGroup(ctx context.Context, group *computepb.InstanceGroupManager, was, spec schema.SliceSpec) (*computepb.Operation, error) {
	if was == spec {
		return nil, nil
	}
	text, err := mark.Encode(spec)
	if err != nil {
		return nil, err
	}
	return started(ask(ctx, "update instance group", g.clients.groups.Patch, &computepb.PatchInstanceGroupManagerRequest{
		Project: g.project, Zone: spec.Zone, InstanceGroupManager: spec.Name, RequestId: new(uuid.NewString()),
		InstanceGroupManagerResource: &computepb.InstanceGroupManager{
			Fingerprint: group.Fingerprint,
			AllInstancesConfig: &computepb.InstanceGroupManagerAllInstancesConfig{Properties: &computepb.InstancePropertiesPatch{
				Labels: mark.Labels(spec), Metadata: map[string]string{mark.KeySpec: text},
			}},
		},
	}))
}
