package compute

import (
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// resizeState is a closed set of the states of a resize request.
type resizeState string

const (
	resizeAccepted  resizeState = "ACCEPTED" // waits for capacity
	resizeSucceeded resizeState = "SUCCEEDED"
	resizeFailed    resizeState = "FAILED"
	resizeCancelled resizeState = "CANCELLED"
)

// resizeRequest asks for all machines of a managed group once there is capacity:
// flex-start.
type resizeRequest struct {
	asked   *computeapi.ResizeRequest // never changed
	id      uint64
	created time.Time

	// Guarded by the API's lock.
	state     resizeState
	lastError *cloud.Error
}

// pending is the request that waits, nil if none does. The lock is held.
func (m *manager) pending() *resizeRequest {
	for _, request := range m.resizes {
		if request.state == resizeAccepted {
			return request
		}
	}
	return nil
}

// waiting reports whether the group's size is still only asked for. The lock is held.
func (m *manager) waiting() bool { return m.pending() != nil }

func (s *groups) resizeEndpoints() map[string]endpoint {
	const zone, permission = "zones/{zone}", "compute.instanceGroupManagers."
	all := "instanceGroupManagers/{group}/resizeRequests"
	return map[string]endpoint{
		pattern("POST", zone, all): {
			method: "resizeRequests.insert", permission: permission + "update", creates: true, do: s.insertResize,
		},
		pattern("GET", zone, all):                   {method: "resizeRequests.list", permission: permission + "get", do: s.listResizes},
		pattern("GET", zone, all+"/{name}"):         {method: "resizeRequests.get", permission: permission + "get", do: s.getResize},
		pattern("POST", zone, all+"/{name}/cancel"): {method: "resizeRequests.cancel", permission: permission + "update", do: s.cancelResize},
		pattern("DELETE", zone, all+"/{name}"):      {method: "resizeRequests.delete", permission: permission + "update", do: s.deleteResize},
	}
}

// groupOf is the managed group that a request about a resize request is about.
func (s *groups) groupOf(r *request) (*manager, error) {
	group := *r
	group.name = r.PathValue("group")
	return s.manager(&group)
}

// resizeOf is the resize request that the request is about.
func (s *groups) resizeOf(r *request) (*manager, *resizeRequest, error) {
	m, err := s.groupOf(r)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range m.resizes {
		if request.asked.Name == r.name {
			return m, request, nil
		}
	}
	return nil, nil, missing(m.path() + "/resizeRequests/" + r.name)
}

func (s *groups) insertResize(r *request) (any, error) {
	m, err := s.groupOf(r)
	if err != nil {
		return nil, err
	}
	asked := &computeapi.ResizeRequest{}
	if err := r.read(asked); err != nil {
		return nil, err
	}
	r.name = asked.Name
	if err := checkName(r.name); err != nil {
		return nil, err
	}
	size := int(asked.ResizeBy)
	if size < 1 {
		return nil, invalid("Invalid value for field 'resource.resizeBy': '%d'. Must be at least 1.", size)
	}
	if err := s.fitsPolicy(m, size); err != nil {
		return nil, err
	}
	request := &resizeRequest{asked: asked, created: s.cloud.Clock().Now(), state: resizeAccepted}
	if err := s.accept(m, request, size); err != nil {
		return nil, err
	}
	op := s.operations.record(r)
	s.grow(m)
	return op, nil
}

func (s *groups) accept(m *manager, request *resizeRequest, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range m.resizes {
		if other.asked.Name == request.asked.Name {
			return exists(m.path() + "/resizeRequests/" + request.asked.Name)
		}
	}
	if m.size != 0 || m.deleting {
		return invalid("The emulator of Compute Engine takes a resize request of an empty managed group only.")
	}
	request.id = s.ids.next()
	m.resizes = append(m.resizes, request)
	m.size, m.run, m.grown, m.failed = size, time.Duration(request.asked.RequestedRunDuration.Seconds)*time.Second, false, nil
	return nil
}

func (s *groups) listResizes(r *request) (any, error) {
	m, err := s.groupOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	var items []listItem
	for _, request := range m.resizes {
		items = append(items, listItem{scope: r.scope(), name: request.asked.Name, message: request.show(m)})
	}
	s.mu.Unlock()
	return s.operations.lists.listed(r, "compute#instanceGroupManagerResizeRequestList", items)
}

func (s *groups) getResize(r *request) (any, error) {
	m, request, err := s.resizeOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return request.show(m), nil
}

// cancelResize cancels a request that still waits.
func (s *groups) cancelResize(r *request) (any, error) {
	m, request, err := s.resizeOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	state := request.state
	if state == resizeAccepted {
		request.state, m.size = resizeCancelled, 0
	}
	s.mu.Unlock()
	if state != resizeAccepted {
		return nil, invalid("The resize request '%s' is in state %s and cannot be cancelled.", r.name, state)
	}
	_, _ = s.cloud.Delete(m.key) // an attempt may be under way
	return s.operations.record(r), nil
}

// deleteResize forgets a request that waits no longer.
func (s *groups) deleteResize(r *request) (any, error) {
	m, request, err := s.resizeOf(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	waits := request.state == resizeAccepted
	if !waits {
		m.resizes = slices.DeleteFunc(m.resizes, func(other *resizeRequest) bool { return other == request })
	}
	s.mu.Unlock()
	if waits {
		return nil, invalid("The resize request '%s' is in state ACCEPTED and cannot be deleted; cancel it first.", r.name)
	}
	return s.operations.record(r), nil
}

// show is a request as the API shows it. The lock is held.
func (q *resizeRequest) show(m *manager) *computeapi.ResizeRequest {
	v := new(*q.asked)
	v.Kind, v.ID = "compute#instanceGroupManagerResizeRequest", q.id
	v.CreationTimestamp, v.State = timestamp(q.created), string(q.state)
	v.SelfLink = linkRoot + m.path() + "/resizeRequests/" + q.asked.Name
	v.Zone = linkRoot + strings.TrimSuffix(m.path(), "/instanceGroupManagers/"+m.key.Name)
	if q.lastError == nil {
		return v
	}
	why := failureOf(q.lastError, m.path()).errorList()
	v.Status = computeapi.ResizeStatus{}
	if q.state == resizeFailed {
		v.Status.Error = why
	} else {
		v.Status.LastAttempt = computeapi.ResizeAttempt{Error: why}
	}
	return v
}
