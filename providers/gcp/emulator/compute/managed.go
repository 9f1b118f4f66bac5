package compute

import (
	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// managedInstances are a group's machines, made or still to be made.
func (s *groups) managedInstances(r *request) (any, error) {
	m, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	root := linkRoot + "projects/" + m.key.Project + "/zones/" + m.key.Zone + "/instances/"
	answer := &computepb.InstanceGroupManagersListManagedInstancesResponse{}
	g, there := s.cloud.Group(m.key)
	if there && len(g.Hosts) > 0 {
		action := actionOn(g)
		for _, item := range s.instances.machines(g) {
			instance, _ := item.message.(*computepb.Instance)
			answer.ManagedInstances = append(answer.ManagedInstances, &computepb.ManagedInstance{
				Instance: new(root + item.name), Name: &item.name, Id: instance.Id, InstanceStatus: instance.Status,
				CurrentAction: &action,
			})
		}
		return answer, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.grown || m.deleting || m.waiting() {
		return answer, nil
	}
	for _, name := range m.instances() {
		managed := &computepb.ManagedInstance{
			Instance: new(root + name), Name: new(name), CurrentAction: new("CREATING"),
		}
		if m.failed != nil {
			managed.LastAttempt = &computepb.ManagedInstanceLastAttempt{Errors: lastErrors(failureOf(m.failed, root+name))}
		}
		answer.ManagedInstances = append(answer.ManagedInstances, managed)
	}
	return answer, nil
}

// actionOn is what a managed group is doing to its machines.
func actionOn(g *cloud.Group) string {
	if g.Shown == cloud.StateCreating {
		return "CREATING"
	}
	if g.Shown == cloud.StateDeleting {
		return "DELETING"
	}
	return "NONE"
}

func lastErrors(f operationFailure) *computepb.ManagedInstanceLastAttemptErrors {
	return &computepb.ManagedInstanceLastAttemptErrors{Errors: f.errorList().GetErrors()}
}
