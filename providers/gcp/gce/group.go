package gce

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// begin asks for one part of a group. The operation is nil where there is nothing
// to do: the part is there already, or this slice needs none.
func (g *Engine) begin(ctx context.Context, r engine.Order, s stage) (*computeapi.Operation, error) {
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

func (g *api) beginTemplate(ctx context.Context, r engine.Order) (*computeapi.Operation, error) {
	template, err := g.template(r)
	if err != nil {
		return nil, err
	}
	op, err := g.order(ctx, "create instance template", computeapi.Change{
		Method: http.MethodPost, Path: templatePath(), Body: template, RequestID: requestID(r, stageTemplate),
	})
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

func (g *api) beginPolicy(ctx context.Context, r engine.Order) (*computeapi.Operation, error) {
	topology := topologyOf(r.Spec)
	if topology == "" {
		return nil, nil
	}
	op, err := g.order(ctx, "create workload policy", computeapi.Change{
		Method: http.MethodPost, Path: policyPath(r.Spec.Zone), Body: workloadPolicy(r.Spec, topology), RequestID: requestID(r, stagePolicy),
	})
	if apierror.StatusOf(err) != http.StatusConflict {
		return op, err
	}
	there, found, err := g.findPolicy(ctx, r.Spec)
	if err != nil || !found {
		return nil, err // the next stage will report that it is missing
	}
	if there.Description != groupDescription(r.Spec) {
		return nil, apierror.Errorf(schema.ErrorConflict, "a resource policy that is not this slice's has the name %s in %s", r.Spec.Name, accelerators.RegionOf(r.Spec.Zone))
	}
	return nil, nil
}

func (g *api) beginGroup(ctx context.Context, r engine.Order) (*computeapi.Operation, error) {
	op, err := g.order(ctx, "create instance group", computeapi.Change{
		Method: http.MethodPost, Path: groupPath(r.Spec.Zone), Body: g.group(r.Spec), RequestID: requestID(r, stageGroup),
	})
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
func ownGroup(group *computeapi.InstanceGroupManager, name string) error {
	if baseOf(group.InstanceTemplate) != name {
		return apierror.Errorf(schema.ErrorConflict, "an instance group that is not this slice's has the name %s", name)
	}
	return nil
}

// beginResize asks for the machines of a flex-start group.
func (g *Engine) beginResize(ctx context.Context, r engine.Order) (*computeapi.Operation, error) {
	if !byResize(r.Spec) {
		return nil, nil
	}
	op, err := g.order(ctx, "request machines", computeapi.Change{
		Method: http.MethodPost, Path: groupPath(r.Spec.Zone, r.Spec.Name, "resizeRequests"), Body: resize(r.Spec), RequestID: requestID(r, stageResize),
	})
	if rejectsResizeRequests(err) {
		// The machines are of the flex-start model by their template and wait for
		// capacity together, so that the group may simply be resized.
		op, err = g.order(ctx, "resize instance group", computeapi.Change{
			Method: http.MethodPost, Path: groupPath(r.Spec.Zone, r.Spec.Name, "resize"), Query: computeapi.Query{"size": strconv.Itoa(r.Spec.Hosts)},
			RequestID: requestID(r, stageResize),
		})
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

func (g *api) findInstance(ctx context.Context, zone, name string) (*computeapi.Instance, bool, error) {
	return lookup[computeapi.Instance](ctx, g, "read instance", instancePath(zone, name))
}

func (g *api) findTemplate(ctx context.Context, name string) (*computeapi.InstanceTemplate, bool, error) {
	return lookup[computeapi.InstanceTemplate](ctx, g, "read instance template", templatePath(name))
}

func (g *api) findPolicy(ctx context.Context, spec schema.SliceSpec) (*computeapi.ResourcePolicy, bool, error) {
	return lookup[computeapi.ResourcePolicy](ctx, g, "read workload policy", policyPath(spec.Zone, spec.Name))
}

func (g *api) findGroup(ctx context.Context, zone, name string) (*computeapi.InstanceGroupManager, bool, error) {
	return lookup[computeapi.InstanceGroupManager](ctx, g, "read instance group", groupPath(zone, name))
}

// instanceMarks are the marks of an instance; one of a group has
// another name than the slice.
func instanceMarks(i *computeapi.Instance) mark.Marks {
	return mark.Marks{Name: i.Name, Zone: baseOf(i.Zone), Labels: i.Labels, Text: metadataText(i.Metadata, mark.KeySpec)}
}

func templateMarks(t *computeapi.InstanceTemplate) mark.Marks {
	return mark.Marks{
		Name: t.Name, Zone: describedZone(t.Description), Labels: t.Properties.Labels,
		Text: metadataText(t.Properties.Metadata, mark.KeySpec),
	}
}

func metadataText(m computeapi.Metadata, key string) string {
	for _, item := range m.Items {
		if item.Key == key {
			return item.Value
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
