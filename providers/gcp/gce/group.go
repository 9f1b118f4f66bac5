package gce

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// begin asks for one part of a group. The operation is nil where there is nothing
// to do: the part is there already, or this slice needs none.
func (g *Engine) begin(ctx context.Context, r engine.Order, s stage) (*computepb.Operation, error) {
	switch s {
	case stageTemplate:
		return g.beginTemplate(ctx, r)
	case stagePolicy:
		return g.beginPolicy(ctx, r)
	case stageGroup:
		return g.beginGroup(ctx, r)
	case stageResize:
		return g.beginResize(ctx, r)
	case stageInstance, stageUpdate:
	}
	return nil, fmt.Errorf("%q is no part of a group", s)
}

func (g *api) beginTemplate(ctx context.Context, r engine.Order) (*computepb.Operation, error) {
	template, err := g.template(r)
	if err != nil {
		return nil, err
	}
	op, err := started(ask(ctx, "create instance template", g.clients.templates.Insert, &computepb.InsertInstanceTemplateRequest{
		Project: g.project, InstanceTemplateResource: template, RequestId: requestID(r, stageTemplate),
	}))
	if apierror.StatusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findTemplate(ctx, r.Spec.Name)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, apierror.Errorf(schema.ErrorUnavailable, "its instance template was there a moment ago and is not now")
	}
	return nil, sameSlice(templateMarks(there), r.Spec)
}

func (g *api) beginPolicy(ctx context.Context, r engine.Order) (*computepb.Operation, error) {
	topology := topologyOf(r.Spec)
	if topology == "" {
		return nil, nil
	}
	op, err := started(ask(ctx, "create workload policy", g.clients.policies.Insert, &computepb.InsertResourcePolicyRequest{
		Project: g.project, Region: accelerators.RegionOf(r.Spec.Zone), ResourcePolicyResource: workloadPolicy(r.Spec, topology),
		RequestId: requestID(r, stagePolicy),
	}))
	if apierror.StatusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findPolicy(ctx, r.Spec)
	if err != nil || !found {
		return nil, err // the next stage will report that it is missing
	}
	if there.GetDescription() != groupDescription(r.Spec) {
		return nil, apierror.Errorf(schema.ErrorConflict, "a resource policy that is not this slice's has the name %s in %s", r.Spec.Name, accelerators.RegionOf(r.Spec.Zone))
	}
	return nil, nil
}

func (g *api) beginGroup(ctx context.Context, r engine.Order) (*computepb.Operation, error) {
	op, err := started(ask(ctx, "create instance group", g.clients.groups.Insert, &computepb.InsertInstanceGroupManagerRequest{
		Project: g.project, Zone: r.Spec.Zone, InstanceGroupManagerResource: g.group(r.Spec), RequestId: requestID(r, stageGroup),
	}))
	if apierror.StatusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findGroup(ctx, r.Spec.Zone, r.Spec.Name)
	if err != nil || !found {
		return nil, err
	}
	return nil, ownGroup(there, r.Spec.Name)
}

// ownGroup checks that a group is of the template of its name. Whose that is, is
// known by then, and what has no labels is known by it.
func ownGroup(group *computepb.InstanceGroupManager, name string) error {
	if baseOf(group.GetInstanceTemplate()) != name {
		return apierror.Errorf(schema.ErrorConflict, "an instance group that is not this slice's has the name %s", name)
	}
	return nil
}

// beginResize asks for the machines of a flex-start group.
func (g *Engine) beginResize(ctx context.Context, r engine.Order) (*computepb.Operation, error) {
	if !byResize(r.Spec) {
		return nil, nil
	}
	op, err := started(ask(ctx, "request machines", g.clients.resizes.Insert, &computepb.InsertInstanceGroupManagerResizeRequestRequest{
		Project: g.project, Zone: r.Spec.Zone, InstanceGroupManager: r.Spec.Name,
		InstanceGroupManagerResizeRequestResource: resize(r.Spec), RequestId: requestID(r, stageResize),
	}))
	if rejectsResizeRequests(err) {
		// The machines are of the flex-start model by their template and wait for
		// capacity together, so that the group may simply be resized.
		op, err = started(ask(ctx, "resize instance group", g.clients.groups.Resize, &computepb.ResizeInstanceGroupManagerRequest{
			Project: g.project, Zone: r.Spec.Zone, InstanceGroupManager: r.Spec.Name, Size: int32(r.Spec.Hosts),
			RequestId: requestID(r, stageResize),
		}))
	}
	if apierror.StatusOf(err) == http.StatusConflict {
		op, err = nil, nil // its name states that it is the same
	}
	if err == nil {
		g.noted(r.Spec.Name, func(n *note) { n.resized = true })
	}
	return op, err
}

// rejectsResizeRequests reports that the service has no resize requests for this
// group: "Creating resize requests for managed instance group with TPU is not
// allowed".
func rejectsResizeRequests(err error) bool {
	return apierror.StatusOf(err) == http.StatusBadRequest && strings.Contains(err.Error(), "resize requests") && strings.Contains(err.Error(), "not allowed")
}

func (g *api) findInstance(ctx context.Context, zone, name string) (*computepb.Instance, bool, error) {
	return lookup(ctx, g.reader, "read instance", g.clients.instances.Get,
		&computepb.GetInstanceRequest{Project: g.project, Zone: zone, Instance: name})
}

func (g *api) findTemplate(ctx context.Context, name string) (*computepb.InstanceTemplate, bool, error) {
	return lookup(ctx, g.reader, "read instance template", g.clients.templates.Get,
		&computepb.GetInstanceTemplateRequest{Project: g.project, InstanceTemplate: name})
}

func (g *api) findPolicy(ctx context.Context, spec schema.SliceSpec) (*computepb.ResourcePolicy, bool, error) {
	return lookup(ctx, g.reader, "read workload policy", g.clients.policies.Get,
		&computepb.GetResourcePolicyRequest{Project: g.project, Region: accelerators.RegionOf(spec.Zone), ResourcePolicy: spec.Name})
}

func (g *api) findGroup(ctx context.Context, zone, name string) (*computepb.InstanceGroupManager, bool, error) {
	return lookup(ctx, g.reader, "read instance group", g.clients.groups.Get,
		&computepb.GetInstanceGroupManagerRequest{Project: g.project, Zone: zone, InstanceGroupManager: name})
}

// instanceMarks are the marks of an instance; one of a group has
// another name than the slice.
func instanceMarks(i *computepb.Instance) mark.Marks {
	return mark.Marks{Name: i.GetName(), Zone: baseOf(i.GetZone()), Labels: i.GetLabels(), Text: metadataText(i.GetMetadata(), mark.KeySpec)}
}

func templateMarks(t *computepb.InstanceTemplate) mark.Marks {
	return mark.Marks{
		Name: t.GetName(), Zone: describedZone(t.GetDescription()), Labels: t.GetProperties().GetLabels(),
		Text: metadataText(t.GetProperties().GetMetadata(), mark.KeySpec),
	}
}

func metadataText(m *computepb.Metadata, key string) string {
	for _, item := range m.GetItems() {
		if item.GetKey() == key {
			return item.GetValue()
		}
	}
	return ""
}

// createdAt reads a time as Compute Engine writes them; zero if it cannot be read.
func createdAt(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}
