package gce

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
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
	was, err := changeable(groupMarks(template, group), spec)
	if err != nil {
		return "", err
	}
	machines, err := g.membersOf(ctx, spec)
	if err != nil {
		return "", err
	}
	var last *computeapi.Operation
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
func (g *api) membersOf(ctx context.Context, spec schema.SliceSpec) ([]*computeapi.Instance, error) {
	var machines []*computeapi.Instance
	err := everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		query := computeapi.Query{"filter": "labels." + mark.SliceLabel + "=" + spec.Name, "pageToken": token}
		page, err := computeapi.Get[computeapi.InstanceList](ctx, g.client, instancePath(spec.Zone), query)
		if err != nil {
			return "", err
		}
		if isPartial(page.Warning) {
			return "", apierror.Errorf(schema.ErrorUnavailable, "the list is not whole: %s", cmp.Or(page.Warning.Message, page.Warning.Code))
		}
		for _, machine := range page.Items {
			if machine == nil || machine.Name == "" {
				return "", errUnnamed("instance")
			}
			if marks := instanceMarks(machine); marks.Owned(spec.Stack) && marks.Labels[mark.SliceLabel] == spec.Name && marks.Name != spec.Name {
				machines = append(machines, machine)
			}
		}
		return page.NextPageToken, nil
	})
	return machines, apierror.Interrupted(ctx, err)
}

// change changes the first attribute of a machine that differs, nil if none does.
// Labels and tags of other people's making stay.
func (g *api) change(ctx context.Context, machine *computeapi.Instance, was, spec schema.SliceSpec) (*computeapi.Operation, error) {
	text, err := mark.Encode(spec)
	if err != nil {
		return nil, err
	}
	if labels := mark.Relabel(machine.Labels, mark.Labels(was), mark.Labels(spec)); !maps.Equal(labels, machine.Labels) {
		return g.set(ctx, machine, "set labels", "setLabels", computeapi.LabelsRequest{Labels: labels, LabelFingerprint: machine.LabelFingerprint})
	}
	if tags := mark.Retag(machine.Tags.Items, mark.SplitList(was.Cloud.Live.Tags), mark.SplitList(spec.Cloud.Live.Tags)); !slices.Equal(tags, machine.Tags.Items) {
		return g.set(ctx, machine, "set tags", "setTags", computeapi.Tags{Items: tags, Fingerprint: machine.Tags.Fingerprint})
	}
	if op, err := g.changeAddress(ctx, machine, spec); op != nil || err != nil {
		return op, err
	}
	if metadataText(machine.Metadata, mark.KeySpec) == text {
		return nil, nil
	}
	return g.set(ctx, machine, "set metadata", "setMetadata", withSpec(machine.Metadata, text))
}

// set changes something of a machine, by a method that replaces what it is given.
func (g *api) set(ctx context.Context, machine *computeapi.Instance, what, method string, body any) (*computeapi.Operation, error) {
	return g.order(ctx, what, computeapi.Change{
		Method: http.MethodPost, Path: instancePath(baseOf(machine.Zone), machine.Name, method), Body: body, RequestID: uuid.NewString(),
	})
}

// changeAddress gives a machine an external address, or takes it away.
func (g *api) changeAddress(ctx context.Context, machine *computeapi.Instance, spec schema.SliceSpec) (*computeapi.Operation, error) {
	if len(machine.NetworkInterfaces) == 0 {
		return nil, nil
	}
	nic := machine.NetworkInterfaces[0]
	access := nic.AccessConfigs
	switch {
	case spec.Cloud.Live.InternalIPs && len(access) > 0:
		return g.order(ctx, "take external address away", computeapi.Change{
			Method: http.MethodPost, Path: instancePath(spec.Zone, machine.Name, "deleteAccessConfig"), RequestID: uuid.NewString(),
			Query: computeapi.Query{"networkInterface": nic.Name, "accessConfig": access[0].Name},
		})
	case !spec.Cloud.Live.InternalIPs && len(access) == 0:
		return g.order(ctx, "add external address", computeapi.Change{
			Method: http.MethodPost, Path: instancePath(spec.Zone, machine.Name, "addAccessConfig"), RequestID: uuid.NewString(),
			Query: computeapi.Query{"networkInterface": nic.Name}, Body: externalAccess(),
		})
	}
	return nil, nil
}

// withSpec is a machine's metadata with another record in it: they are written
// whole, under the fingerprint of what was read.
func withSpec(was computeapi.Metadata, text string) computeapi.Metadata {
	was.Items = slices.Clone(was.Items)
	for i := range was.Items {
		if was.Items[i].Key == mark.KeySpec {
			was.Items[i].Value = text
			return was
		}
	}
	was.Items = append(was.Items, computeapi.MetadataItem{Key: mark.KeySpec, Value: text})
	return was
}

// changeGroup records a spec on its group, whose machines have it already.
func (g *api) changeGroup(ctx context.Context, group *computeapi.InstanceGroupManager, was, spec schema.SliceSpec) (*computeapi.Operation, error) {
	if was == spec {
		return nil, nil
	}
	text, err := mark.Encode(spec)
	if err != nil {
		return nil, err
	}
	return g.order(ctx, "update instance group", computeapi.Change{
		Method: http.MethodPatch, Path: groupPath(spec.Zone, spec.Name), RequestID: uuid.NewString(),
		Body: computeapi.InstanceGroupManager{
			Fingerprint: group.Fingerprint,
			AllInstancesConfig: &computeapi.AllInstancesConfig{Properties: computeapi.PropertiesPatch{
				Labels: mark.Labels(spec), Metadata: map[string]string{mark.KeySpec: text},
			}},
		},
	})
}
