package gcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/schema"
)

// begin asks for one part of a group. The operation is nil where there is nothing
// to do: the part is there already, or this slice needs none.
func (g *gce) begin(ctx context.Context, r order, s stage) (*computepb.Operation, error) {
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

func (g *gce) beginTemplate(ctx context.Context, r order) (*computepb.Operation, error) {
	template, err := g.template(r)
	if err != nil {
		return nil, err
	}
	op, err := started(ask(ctx, "create instance template", g.clients.templates.Insert, &computepb.InsertInstanceTemplateRequest{
		Project: g.project, InstanceTemplateResource: template, RequestId: requestID(r, stageTemplate),
	}))
	if statusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findTemplate(ctx, r.spec.Name)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, failf(schema.ErrorUnavailable, "its instance template was there a moment ago and is not now")
	}
	return nil, sameSlice(templateMarks(there), r.spec)
}

func (g *gce) beginPolicy(ctx context.Context, r order) (*computepb.Operation, error) {
	topology := topologyOf(r.spec)
	if topology == "" {
		return nil, nil
	}
	op, err := started(ask(ctx, "create workload policy", g.clients.policies.Insert, &computepb.InsertResourcePolicyRequest{
		Project: g.project, Region: regionOf(r.spec.Zone), ResourcePolicyResource: workloadPolicy(r.spec, topology),
		RequestId: requestID(r, stagePolicy),
	}))
	if statusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findPolicy(ctx, r.spec)
	if err != nil || !found {
		return nil, err // the next stage will say that it is missing
	}
	if there.GetDescription() != groupDescription(r.spec) {
		return nil, failf(schema.ErrorConflict, "a resource policy that is not this slice's has the name %s in %s", r.spec.Name, regionOf(r.spec.Zone))
	}
	return nil, nil
}

func (g *gce) beginGroup(ctx context.Context, r order) (*computepb.Operation, error) {
	op, err := started(ask(ctx, "create instance group", g.clients.groups.Insert, &computepb.InsertInstanceGroupManagerRequest{
		Project: g.project, Zone: r.spec.Zone, InstanceGroupManagerResource: g.group(r.spec), RequestId: requestID(r, stageGroup),
	}))
	if statusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findGroup(ctx, r.spec.Zone, r.spec.Name)
	if err != nil || !found {
		return nil, err
	}
	return nil, ownGroup(there, r.spec.Name)
}

// ownGroup checks that a group is of the template of its name. Whose that is, is
// known by then, and what has no labels is known by it.
func ownGroup(group *computepb.InstanceGroupManager, name string) error {
	if baseOf(group.GetInstanceTemplate()) != name {
		return failf(schema.ErrorConflict, "an instance group that is not this slice's has the name %s", name)
	}
	return nil
}

// beginResize asks for the machines of a flex-start group.
func (g *gce) beginResize(ctx context.Context, r order) (*computepb.Operation, error) {
	if !byResize(r.spec) {
		return nil, nil
	}
	op, err := started(ask(ctx, "request machines", g.clients.resizes.Insert, &computepb.InsertInstanceGroupManagerResizeRequestRequest{
		Project: g.project, Zone: r.spec.Zone, InstanceGroupManager: r.spec.Name,
		InstanceGroupManagerResizeRequestResource: resize(r.spec), RequestId: requestID(r, stageResize),
	}))
	if refusesResizeRequests(err) {
		// The machines are of the flex-start model by their template and wait for
		// capacity together, so that the group may simply be told to have them.
		op, err = started(ask(ctx, "resize instance group", g.clients.groups.Resize, &computepb.ResizeInstanceGroupManagerRequest{
			Project: g.project, Zone: r.spec.Zone, InstanceGroupManager: r.spec.Name, Size: int32(r.spec.Hosts),
			RequestId: requestID(r, stageResize),
		}))
	}
	if statusOf(err) == http.StatusConflict {
		op, err = nil, nil // its name says that it is the same
	}
	if err == nil {
		g.noted(r.spec.Name, func(n *gceNote) { n.resized = true })
	}
	return op, err
}

// refusesResizeRequests reports that the service has no resize requests for this
// group: "Creating resize requests for managed instance group with TPU is not
// allowed".
func refusesResizeRequests(err error) bool {
	return statusOf(err) == http.StatusBadRequest && strings.Contains(err.Error(), "resize requests") && strings.Contains(err.Error(), "not allowed")
}

func (g *gce) findInstance(ctx context.Context, zone, name string) (*computepb.Instance, bool, error) {
	return look(ctx, g.reader, "read instance", g.clients.instances.Get,
		&computepb.GetInstanceRequest{Project: g.project, Zone: zone, Instance: name})
}

func (g *gce) findTemplate(ctx context.Context, name string) (*computepb.InstanceTemplate, bool, error) {
	return look(ctx, g.reader, "read instance template", g.clients.templates.Get,
		&computepb.GetInstanceTemplateRequest{Project: g.project, InstanceTemplate: name})
}

func (g *gce) findPolicy(ctx context.Context, spec schema.SliceSpec) (*computepb.ResourcePolicy, bool, error) {
	return look(ctx, g.reader, "read workload policy", g.clients.policies.Get,
		&computepb.GetResourcePolicyRequest{Project: g.project, Region: regionOf(spec.Zone), ResourcePolicy: spec.Name})
}

func (g *gce) findGroup(ctx context.Context, zone, name string) (*computepb.InstanceGroupManager, bool, error) {
	return look(ctx, g.reader, "read instance group", g.clients.groups.Get,
		&computepb.GetInstanceGroupManagerRequest{Project: g.project, Zone: zone, InstanceGroupManager: name})
}

// instanceMarks are what an instance says about itself; one of a group has
// another name than the slice.
func instanceMarks(i *computepb.Instance) marks {
	return marks{name: i.GetName(), zone: baseOf(i.GetZone()), labels: i.GetLabels(), text: metadataText(i.GetMetadata(), metadataSpec)}
}

func templateMarks(t *computepb.InstanceTemplate) marks {
	return marks{
		name: t.GetName(), zone: describedZone(t.GetDescription()), labels: t.GetProperties().GetLabels(),
		text: metadataText(t.GetProperties().GetMetadata(), metadataSpec),
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
