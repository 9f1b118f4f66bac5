package compute

import (
	"errors"
	"strconv"
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// growAgain is after how long a group asks again for the machines it did not get.
const growAgain = time.Minute

// maxFailed is how many failures a group keeps.
const maxFailed = 50

// grow asks for a group's machines, unless it has or had them or wants none.
func (s *groups) grow(m *manager) {
	s.mu.Lock()
	if m.deleting || m.size == 0 || m.grown || m.attempt != "" || s.managers[m.key] != m {
		s.mu.Unlock()
		return
	}
	spec := s.instances.spec(m.key, m.detail, m.size, s.changed)
	spec.Instances = m.instances()
	if m.run > 0 {
		spec.MaxRun, spec.VanishAtEnd = m.run, true
	}
	s.mu.Unlock()
	op, err := s.cloud.Allocate(spec)
	if err != nil {
		s.notGrown(m, "", err)
		return
	}
	s.mu.Lock()
	m.attempt = op.Name
	unwanted := m.deleting || m.size == 0
	s.mu.Unlock()
	if unwanted { // it was deleted meanwhile; what has just been made must not stay
		_, _ = s.cloud.Delete(m.key)
	}
	if now, ok := s.cloud.Operation(op.Name); ok && now.Done() && now.Err != nil {
		s.notGrown(m, op.Name, now.Err)
	}
}

// notGrown notes that an attempt to make a group's machines has failed, once for
// each, and lets it try again later. A flex-start request fails for good if it
// is a quota that it lacks.
func (s *groups) notGrown(m *manager, attempt string, why error) {
	rejected, ok := errors.AsType[*cloud.Error](why)
	if !ok {
		return
	}
	now := s.cloud.Clock().Now()
	s.mu.Lock()
	if m.attempt != attempt {
		s.mu.Unlock()
		return
	}
	m.attempt, m.failed, m.failedAt = "", rejected, now
	for _, name := range m.instances() {
		m.failures = append(m.failures, creationFailure{name, now, failureOf(rejected, name)})
	}
	m.failures = m.failures[max(len(m.failures)-maxFailed, 0):]
	if request := m.pending(); request != nil {
		request.lastError = rejected
		if rejected.Reason == cloud.ReasonQuota {
			request.state, m.size = resizeFailed, 0
		}
	}
	again := m.size > 0 && !m.deleting
	s.mu.Unlock()
	if again {
		s.cloud.Clock().AfterFunc(now.Add(growAgain), func() { s.grow(m) })
	}
}

// changed follows every change of a group's machines.
func (s *groups) changed(g *cloud.Group) {
	s.instances.changed(g)
	s.mu.Lock()
	m := s.managers[g.Key]
	if detail, ok := g.Detail.(*machineDetail); !ok || m == nil || detail.owner != m.id {
		s.mu.Unlock()
		return
	}
	if g.State == cloud.StateReady || g.Cause != "" {
		m.settled(g)
	}
	if g.State == cloud.StateGone && m.deleting {
		delete(s.managers, g.Key)
	}
	attempt := m.attempt
	s.mu.Unlock()
	if g.State != cloud.StateGone || attempt == "" {
		return
	}
	if op, ok := s.cloud.Operation(attempt); ok && op.Err != nil {
		s.notGrown(m, attempt, op.Err)
	}
}

// settled notes that a group has its machines, or has lost them: either way they
// are not made again. Only the end of a flex-start run makes it one that wants none.
func (m *manager) settled(g *cloud.Group) {
	m.grown, m.attempt = true, ""
	request := m.pending()
	switch {
	case g.State == cloud.StateReady:
		m.failed = nil
		if request != nil {
			request.state = resizeSucceeded
		}
	case g.Cause == cloud.CauseMaxRun && g.State == cloud.StateGone:
		m.size, m.grown = 0, false
	case request != nil:
		request.state, request.lastError = resizeFailed, &cloud.Error{Reason: cloud.ReasonState, Zone: g.Zone}
	}
	if m.size == 0 {
		m.grown = false
	}
}

// showManager is a managed group as the API shows it.
func (s *groups) showManager(m *manager) *computeapi.InstanceGroupManager {
	g, there := s.cloud.Group(m.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := new(*m.asked)
	root := linkRoot + "projects/" + m.key.Project
	zone := root + "/zones/" + m.key.Zone
	size := int32(m.size)
	if m.waiting() {
		size = 0
	}
	v.Kind, v.ID, v.TargetSize = "compute#instanceGroupManager", m.id, &size
	v.Zone, v.SelfLink = zone, linkRoot+m.path()
	v.InstanceGroup = zone + "/instanceGroups/" + m.key.Name
	v.CreationTimestamp = timestamp(m.created)
	v.InstanceTemplate = linkRoot + m.uses[0].path()
	v.Fingerprint = fingerprint(m.path(), strconv.Itoa(m.size), strconv.FormatBool(m.deleting), strconv.Itoa(m.changes))
	if v.BaseInstanceName == "" {
		v.BaseInstanceName = m.key.Name
	}
	creating, deleting, none := int32(0), int32(0), int32(0)
	switch {
	case m.deleting || there && g.Shown == cloud.StateDeleting:
		deleting = size
	case there && g.Shown != cloud.StateCreating:
		none = size
	case !m.grown:
		creating = size
	}
	v.CurrentActions = computeapi.GroupActions{
		Creating: creating, Deleting: deleting, None: none,
	}
	if m.config != nil {
		v.AllInstancesConfig = m.config
	}
	v.Status = computeapi.GroupStatus{IsStable: creating == 0 && deleting == 0 && none == size}
	if v.TargetSizePolicy.Mode == "BULK" {
		v.Status.BulkInstanceOperation = m.bulk(creating > 0)
	}
	return v
}

// bulk returns how making all machines at once goes. The lock is held.
func (m *manager) bulk(going bool) *computeapi.BulkOperation {
	b := &computeapi.BulkOperation{InProgress: going}
	if going && m.failed != nil {
		b.LastProgressCheck = computeapi.ProgressCheck{
			Error: failureOf(m.failed, m.path()).errorList(), Timestamp: timestamp(m.failedAt),
		}
	}
	return b
}

// managerErrors are a group's failures to make machines, newest first.
func (s *groups) managerErrors(r *request) (any, error) {
	m, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &computeapi.GroupErrorList{}
	root := linkRoot + "projects/" + m.key.Project + "/zones/" + m.key.Zone + "/instances/"
	for i := range m.failures {
		t := m.failures[len(m.failures)-1-i]
		answer.Items = append(answer.Items, computeapi.GroupError{
			Error:     computeapi.CodedError{Code: t.failure.code, Message: t.failure.message},
			Timestamp: timestamp(t.at),
			InstanceActionDetails: computeapi.GroupActionDetails{
				Action: "CREATING", Instance: root + t.instance,
			},
		})
	}
	return answer, nil
}
