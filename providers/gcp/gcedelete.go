package gcp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/google/uuid"

	"github.com/fray-ml/fray/schema"
)

// deletePatience is how long a deletion is believed to go on: groups of many
// machines take minutes. After it, the slice is listed as what it looks like.
const deletePatience = 10 * time.Minute

func (g *gce) delete(ctx context.Context, stack string, at place) error {
	machine, found, err := g.findInstance(ctx, at.zone, at.name)
	if err != nil {
		return err
	}
	if found {
		if err := mine(instanceMarks(machine), stack); err != nil {
			return err
		}
		id := g.going(stack, at)
		_, err := ask(ctx, "delete instance", g.clients.instances.Delete, &computepb.DeleteInstanceRequest{
			Project: g.project, Zone: at.zone, Instance: at.name, RequestId: stagedID(id, stageInstance, at.name),
		})
		return g.goes(at.name, err)
	}
	template, found, err := g.findTemplate(ctx, at.name)
	if err != nil || !found {
		return err
	}
	if err := mine(templateMarks(template), stack); err != nil {
		return err
	}
	return g.deleteGroup(ctx, stack, at)
}

// mine checks that a stack may delete what is there.
func mine(there marks, stack string) error {
	switch {
	case !there.owned(""):
		return failf(schema.ErrorPermission, "what has the name %s in %s is not fray's, so it is not deleted", there.name, there.zone)
	case !there.owned(stack):
		return failf(schema.ErrorPermission, "it is of the stack %s, so it is not deleted", there.labels[stackLabel])
	}
	return nil
}

// deleteGroup asks for the group to go, or for what is left once it has gone.
func (g *gce) deleteGroup(ctx context.Context, stack string, at place) error {
	group, found, err := g.findGroup(ctx, at.zone, at.name)
	if err != nil {
		return err
	}
	if found && ownGroup(group, at.name) == nil {
		id := g.going(stack, at)
		_, err := ask(ctx, "delete instance group", g.clients.groups.Delete, &computepb.DeleteInstanceGroupManagerRequest{
			Project: g.project, Zone: at.zone, InstanceGroupManager: at.name, RequestId: stagedID(id, stageGroup, at.name),
		})
		return g.goes(at.name, err)
	}
	g.going(stack, at)
	return g.goes(at.name, g.sweep(ctx, at))
}

// sweep deletes the workload policy and then the template of a group that is
// gone. The template says what there may be, so it goes last. What the service
// is not done with is swept again with the next listing.
func (g *gce) sweep(ctx context.Context, at place) error {
	spec := schema.SliceSpec{Name: at.name, Zone: at.zone}
	policy, found, err := g.findPolicy(ctx, spec)
	if err != nil {
		return err
	}
	id := g.deleteID(at.name)
	if found && describedAs(policy.GetDescription(), at.name) {
		op, err := started(ask(ctx, "delete workload policy", g.clients.policies.Delete, &computepb.DeleteResourcePolicyRequest{
			Project: g.project, Region: regionOf(at.zone), ResourcePolicy: at.name, RequestId: stagedID(id, stagePolicy, at.name),
		}))
		if err != nil && statusOf(err) != http.StatusNotFound {
			return err
		}
		if over, failure := isOver(op); failure != nil || err == nil && !over {
			return failure
		}
	}
	_, err = ask(ctx, "delete instance template", g.clients.templates.Delete, &computepb.DeleteInstanceTemplateRequest{
		Project: g.project, InstanceTemplate: at.name, RequestId: stagedID(id, stageTemplate, at.name),
	})
	return err
}

// describedAs reports whether groupDescription wrote this of a slice.
func describedAs(description, name string) bool {
	var of, stack, zone string
	_, err := fmt.Sscanf(description, "part of fray slice %s of stack %s in %s", &of, &stack, &zone)
	return err == nil && of == name
}

// going notes that a slice is being deleted, and returns the id under which that
// is asked for: the same as long as it is the same deletion.
func (g *gce) going(stack string, at place) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.note(at.name)
	if n.deleteID == "" || g.now().Sub(n.deletedAt) > deletePatience {
		n.deleteID = uuid.NewString()
	}
	*n = gceNote{stack: stack, zone: at.zone, deletedAt: g.now(), deleteID: n.deleteID}
	return n.deleteID
}

func (g *gce) deleteID(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.note(name).deleteID
}

// isGoing reports whether a slice is being deleted as far as this process knows.
func (g *gce) isGoing(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.notes[name].isGoing(g.now())
}

func (n *gceNote) isGoing(now time.Time) bool {
	return n != nil && !n.deletedAt.IsZero() && now.Sub(n.deletedAt) <= deletePatience
}

// goes makes of the answer to a deletion what it means. What is gone or going
// already is as asked for; what was refused is not going.
func (g *gce) goes(name string, err error) error {
	switch {
	case err == nil, statusOf(err) == http.StatusNotFound, isNotReady(err):
		return nil
	}
	g.noted(name, func(n *gceNote) { n.deletedAt = time.Time{} })
	return err
}

// isNotReady reports that something else is being done to a resource, such as
// deleting it, so that it takes no other order now.
func isNotReady(err error) bool {
	a, ok := cloudAnswerOf(err)
	return ok && a.has("resourceNotReady", "RESOURCE_NOT_READY", "resourceInUseByAnotherResource", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE")
}
