package compute

import (
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// managedInstances are a group's machines, made or still to be made.
func (s *groups) managedInstances(r *request) (any, error) {
	m, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	root := linkRoot + "projects/" + m.key.Project + "/zones/" + m.key.Zone + "/instances/"
	answer := &computeapi.ManagedInstanceList{}
	g, there := s.cloud.Group(m.key)
	if there && len(g.Hosts) > 0 {
		action := actionOn(g)
		for _, item := range s.instances.machines(g) {
			instance, _ := item.message.(*computeapi.Instance)
			answer.ManagedInstances = append(answer.ManagedInstances, computeapi.ManagedInstance{
				Instance: root + item.name, Name: item.name, ID: instance.ID, InstanceStatus: instance.Status,
				CurrentAction: action,
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
		managed := computeapi.ManagedInstance{
			Instance: root + name, Name: name, CurrentAction: "CREATING",
		}
		if m.failed != nil {
			managed.LastAttempt = computeapi.ManagedAttempt{Errors: lastErrors(failureOf(m.failed, root+name))}
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

func lastErrors(f operationFailure) computeapi.ErrorList {
	return computeapi.ErrorList{Errors: f.errorList().Errors}
}
