package gce

import (
	"context"
	"fmt"
	"net/http"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Get reads the one machine of a slice, or else the parts of its group.
func (g *Engine) Get(ctx context.Context, stack string, at engine.Place) (*schema.SliceStatus, error) {
	machine, found, err := g.findInstance(ctx, at.Zone, at.Name)
	if err != nil {
		return nil, err
	}
	if found {
		return g.getMachine(stack, instanceMarks(machine), func(spec schema.SliceSpec) schema.SliceStatus {
			return machineStatus(spec, machine, g.isGoing(spec.Name))
		})
	}
	template, found, err := g.findTemplate(ctx, at.Name)
	if err != nil || !found {
		return nil, err
	}
	group, there, err := g.findGroup(ctx, at.Zone, at.Name)
	if err != nil {
		return nil, err
	}
	f := machineGroup{template: template}
	if there && ownGroup(group, at.Name) == nil {
		f.group, f.age = group, g.now().Sub(createdAt(group.CreationTimestamp))
	}
	if f.machines, err = g.managedMachines(ctx, &f, at); err != nil {
		return nil, err
	}
	return g.getMachine(stack, groupMarks(template, f.group), func(spec schema.SliceSpec) schema.SliceStatus {
		f.spec = spec
		return g.groupRead(&f)
	})
}

// managedMachines are the machines that a group states it has, as far as their state
// goes; none where there is no group.
func (g *api) managedMachines(ctx context.Context, f *machineGroup, at engine.Place) ([]*computeapi.Instance, error) {
	if f.group == nil {
		return nil, nil
	}
	path := groupPath(at.Zone, at.Name, "listManagedInstances")
	var machines []*computeapi.Instance
	err := everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := computeapi.Post[computeapi.ManagedInstanceList](ctx, g.client, path, computeapi.Query{"pageToken": token})
		if err != nil {
			return "", err
		}
		for _, managed := range page.ManagedInstances {
			if managed.InstanceStatus != "" { // else it is not there, or not yet
				machines = append(machines, &computeapi.Instance{
					Name: managed.Name, Status: managed.InstanceStatus, InstanceProperties: computeapi.InstanceProperties{Scheduling: f.template.Properties.Scheduling},
				})
			}
		}
		return page.NextPageToken, nil
	})
	if apierror.StatusOf(err) == http.StatusNotFound { // it has gone since it was read
		f.group = nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list managed instances: %w", apierror.Interrupted(ctx, err))
	}
	return machines, nil
}

// groupRead is how a group stands that was read directly: to see once that machines
// are missing is enough here.
func (g *Engine) groupRead(f *machineGroup) schema.SliceStatus {
	g.mu.Lock()
	f.note = *g.note(f.spec.Name)
	g.mu.Unlock()
	f.note.absent = 2
	if status, ok := groupStatus(f, g.now()); ok {
		return status
	}
	return schema.SliceStatus{Spec: f.spec, Phase: schema.SliceCreating, CreatedAt: createdAt(f.template.CreationTimestamp)}
}

// getMachine is the status of what carries these marks, nil where they are another's.
func (g *Engine) getMachine(stack string, marks mark.Marks, status func(schema.SliceSpec) schema.SliceStatus) (*schema.SliceStatus, error) {
	if !marks.Owned(stack) {
		return nil, nil
	}
	spec, err := marks.Spec()
	if err != nil {
		return nil, mark.Unreadable(marks, err)
	}
	is := status(spec)
	return &is, nil
}
