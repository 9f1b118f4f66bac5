package gcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/iterator"

	"github.com/fray-ml/fray/schema"
)

// Get reads one slice directly. What has to wait for its turn is an error of kind
// rate that says for how long.
func (p *Provider) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	status, err := p.get(ctx, spec)
	if err != nil {
		return schema.SliceStatus{}, false, classified("read slice", spec.Name, err)
	}
	if status == nil {
		return schema.SliceStatus{}, false, nil
	}
	return *status, true, nil
}

func (p *Provider) get(ctx context.Context, spec schema.SliceSpec) (*schema.SliceStatus, error) {
	e, err := p.engineFor(spec)
	if err != nil {
		return nil, err
	}
	if wait := p.reads.take(p.config.Now()); wait > 0 {
		return nil, &kindError{
			kind: schema.ErrorRate, after: wait,
			err: fmt.Errorf("waiting for its turn: at most %d direct reads a minute", p.config.ReadsPerMinute),
		}
	}
	return e.get(ctx, spec.Stack, place{engine: engineOf(spec), zone: spec.Zone, name: spec.Name})
}

// get reads the node and the queued resource of a slice.
func (t *tpu) get(ctx context.Context, stack string, at place) (*schema.SliceStatus, error) {
	s, err := t.look(ctx, at)
	if err != nil || s == nil {
		return nil, err
	}
	m := s.marks()
	if !m.owned(stack) {
		return nil, nil
	}
	// Not through the cache of lists: a list may have been wrong.
	status, err := s.status(m, (&specs{}).reader())
	if err != nil {
		return nil, err
	}
	return &status, nil
}

// get reads the one machine of a slice, or else the parts of its group.
func (g *gce) get(ctx context.Context, stack string, at place) (*schema.SliceStatus, error) {
	machine, found, err := g.findInstance(ctx, at.zone, at.name)
	if err != nil {
		return nil, err
	}
	if found {
		return g.getMachine(stack, instanceMarks(machine), func(spec schema.SliceSpec) schema.SliceStatus {
			return machineStatus(spec, machine, g.isGoing(spec.Name))
		})
	}
	template, found, err := g.findTemplate(ctx, at.name)
	if err != nil || !found {
		return nil, err
	}
	group, there, err := g.findGroup(ctx, at.zone, at.name)
	if err != nil {
		return nil, err
	}
	f := gceGroup{template: template}
	if there && ownGroup(group, at.name) == nil {
		f.group, f.age = group, g.now().Sub(createdAt(group.GetCreationTimestamp()))
	}
	if f.machines, err = g.managedMachines(ctx, &f, at); err != nil {
		return nil, err
	}
	return g.getMachine(stack, groupMarks(template, f.group), func(spec schema.SliceSpec) schema.SliceStatus {
		f.spec = spec
		return g.groupRead(&f)
	})
}

// managedMachines are the machines that a group says it has, as far as their state
// goes; none where there is no group.
func (g *gce) managedMachines(ctx context.Context, f *gceGroup, at place) ([]*computepb.Instance, error) {
	if f.group == nil {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	it := g.clients.groups.ListManagedInstances(bounded, &computepb.ListManagedInstancesInstanceGroupManagersRequest{
		Project: g.project, Zone: at.zone, InstanceGroupManager: at.name,
	})
	var machines []*computepb.Instance
	for {
		managed, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return machines, nil
		}
		if statusOf(err) == http.StatusNotFound { // it has gone since it was read
			f.group = nil
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list managed instances: %w", interrupted(ctx, err))
		}
		if managed.InstanceStatus == nil {
			continue // it is not there, or not yet
		}
		machines = append(machines, &computepb.Instance{
			Name: managed.Name, Status: managed.InstanceStatus, Scheduling: f.template.GetProperties().GetScheduling(),
		})
	}
}

// groupRead is how a group stands that was read directly: to see once that machines
// are missing is enough here.
func (g *gce) groupRead(f *gceGroup) schema.SliceStatus {
	g.mu.Lock()
	f.note = *g.note(f.spec.Name)
	g.mu.Unlock()
	f.note.absent = 2
	if status, ok := groupStatus(f, g.now()); ok {
		return status
	}
	return schema.SliceStatus{Spec: f.spec, Phase: schema.SliceCreating, CreatedAt: createdAt(f.template.GetCreationTimestamp())}
}

// getMachine is the status of what carries these marks, nil where they are another's.
func (g *gce) getMachine(stack string, said marks, status func(schema.SliceSpec) schema.SliceStatus) (*schema.SliceStatus, error) {
	if !said.owned(stack) {
		return nil, nil
	}
	spec, err := said.spec()
	if err != nil {
		return nil, unreadable(said, err)
	}
	is := status(spec)
	return &is, nil
}
