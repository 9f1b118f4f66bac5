package gce

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// deletePatience is how long a deletion is believed to go on: groups of many
// machines take minutes. After it, the slice is listed as what its parts show.
const deletePatience = 10 * time.Minute

// Delete asks for the instance, or the parts of the group, to go.
func (g *Engine) Delete(ctx context.Context, stack string, at engine.Place) error {
	machine, found, err := g.findInstance(ctx, at.Zone, at.Name)
	if err != nil {
		return err
	}
	if found {
		if err := mine(instanceMarks(machine), stack); err != nil {
			return err
		}
		id := g.going(stack, at)
		_, err := g.order(ctx, "delete instance", computeapi.Change{
			Method: http.MethodDelete, Path: instancePath(at.Zone, at.Name), RequestID: stagedID(id, stageInstance, at.Name),
		})
		return g.goes(at.Name, err)
	}
	template, found, err := g.findTemplate(ctx, at.Name)
	if err != nil || !found {
		return err
	}
	if err := mine(templateMarks(template), stack); err != nil {
		return err
	}
	return g.deleteGroup(ctx, stack, at)
}

// mine checks that a stack may delete what is there.
func mine(there mark.Marks, stack string) error {
	switch {
	case !there.Owned(""):
		return apierror.Errorf(schema.ErrorPermission, "what has the name %s in %s is not fray's, so it is not deleted", there.Name, there.Zone)
	case !there.Owned(stack):
		return apierror.Errorf(schema.ErrorPermission, "it is of the stack %s, so it is not deleted", there.Labels[mark.StackLabel])
	}
	return nil
}

// deleteGroup asks for the group to go, or for what is left once it has gone.
func (g *Engine) deleteGroup(ctx context.Context, stack string, at engine.Place) error {
	group, found, err := g.findGroup(ctx, at.Zone, at.Name)
	if err != nil {
		return err
	}
	if found && ownGroup(group, at.Name) == nil {
		id := g.going(stack, at)
		_, err := g.order(ctx, "delete instance group", computeapi.Change{
			Method: http.MethodDelete, Path: groupPath(at.Zone, at.Name), RequestID: stagedID(id, stageGroup, at.Name),
		})
		return g.goes(at.Name, err)
	}
	g.going(stack, at)
	return g.goes(at.Name, g.sweep(ctx, at))
}

// sweep deletes the workload policy and then the template of a group that is
// gone. The template states what there may be, so it goes last. What the service
// is not done with is swept again with the next listing.
func (g *Engine) sweep(ctx context.Context, at engine.Place) error {
	spec := schema.SliceSpec{Name: at.Name, Zone: at.Zone}
	policy, found, err := g.findPolicy(ctx, spec)
	if err != nil {
		return err
	}
	id := g.deleteID(at.Name)
	if found && describedAs(policy.Description, at.Name) {
		op, err := g.order(ctx, "delete workload policy", computeapi.Change{
			Method: http.MethodDelete, Path: policyPath(at.Zone, at.Name), RequestID: stagedID(id, stagePolicy, at.Name),
		})
		if err != nil && apierror.StatusOf(err) != http.StatusNotFound {
			return err
		}
		if err == nil {
			if over, failure := isOver(op); failure != nil || !over {
				return failure
			}
		}
	}
	_, err = g.order(ctx, "delete instance template", computeapi.Change{
		Method: http.MethodDelete, Path: templatePath(at.Name), RequestID: stagedID(id, stageTemplate, at.Name),
	})
	return err
}

// describedAs reports whether groupDescription wrote this of a slice.
func describedAs(description, name string) bool {
	var of, stack, zone string
	_, err := fmt.Sscanf(description, "part of fray slice %s of stack %s in %s", &of, &stack, &zone)
	return err == nil && of == name
}

// isNotReady reports that something else is being done to a resource, such as
// deleting it, so that it takes no other order now.
func isNotReady(err error) bool {
	a, ok := apierror.AnswerOf(err)
	return ok && a.Has("resourceNotReady", "RESOURCE_NOT_READY", "resourceInUseByAnotherResource", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE")
}
