package compute

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// manager is a managed instance group. Its machines are one group of the model,
// all of them or none: that is what a target size policy BULK is, and what this
// emulator does without one too.
type manager struct {
	key     cloud.Key
	id      uint64
	created time.Time
	asked   *computeapi.InstanceGroupManager // never changed
	detail  *machineDetail
	uses    []templateKey // its template and its policy

	// Guarded by the lock of groups.
	size     int           // machines wanted
	run      time.Duration // for how long; 0: as the template states
	grown    bool          // it has had its machines: they are not made again when they are lost
	attempt  string        // the operation that makes them
	failed   *cloud.Error  // why that failed last
	failedAt time.Time
	failures []creationFailure
	deleting bool
	config   *computeapi.AllInstancesConfig // patched; nil: as asked for
	changes  int
	resizes  []*resizeRequest // oldest first
}

// creationFailure is one failure to make a machine.
type creationFailure struct {
	instance string
	at       time.Time
	failure  operationFailure
}

func (m *manager) path() string {
	return "projects/" + m.key.Project + "/zones/" + m.key.Zone + "/instanceGroupManagers/" + m.key.Name
}

// instances are the names that the group's machines get.
func (m *manager) instances() []string {
	base := m.asked.BaseInstanceName
	if base == "" {
		base = m.key.Name
	}
	var names []string
	for i := range m.size {
		suffix := strconv.FormatUint(fingerprintNumber(fmt.Sprint(m.path(), m.id, i)), 36)
		names = append(names, base+"-"+suffix[len(suffix)-4:])
	}
	return names
}

// groups serves managed instance groups and their resize requests, and keeps what
// the model does not know of them. Its lock is never held while the model is
// called: the model calls back.
type groups struct {
	cloud      *cloud.Cloud
	operations *operations
	ids        *ids
	templates  *templates
	instances  *instances

	mu       sync.Mutex
	managers map[cloud.Key]*manager
}

func (s *groups) endpoints() map[string]endpoint {
	const zone, permission = "zones/{zone}", "compute.instanceGroupManagers."
	one := "instanceGroupManagers/{name}"
	return map[string]endpoint{
		pattern("POST", zone, "instanceGroupManagers"): {
			method: "instanceGroupManagers.insert", permission: permission + "create", creates: true, do: s.insertManager,
		},
		pattern("GET", zone, "instanceGroupManagers"): {
			method: "instanceGroupManagers.list", permission: permission + "list", do: func(r *request) (any, error) {
				return s.operations.lists.listed(r, "compute#instanceGroupManagerList", s.allManagers(r))
			},
		},
		"GET /compute/v1/projects/{project}/aggregated/instanceGroupManagers": {
			method: "instanceGroupManagers.aggregatedList", permission: permission + "list", do: func(r *request) (any, error) {
				return s.operations.lists.aggregated(r, "instanceGroupManagers", s.allManagers(r))
			},
		},
		pattern("GET", zone, one): {
			method: "instanceGroupManagers.get", permission: permission + "get", do: func(r *request) (any, error) {
				m, err := s.manager(r)
				if err != nil {
					return nil, err
				}
				return s.showManager(m), nil
			},
		},
		pattern("PATCH", zone, one):  {method: "instanceGroupManagers.patch", permission: permission + "update", do: s.patchManager},
		pattern("DELETE", zone, one): {method: "instanceGroupManagers.delete", permission: permission + "delete", do: s.deleteManager},
		pattern("POST", zone, one+"/resize"): {
			method: "instanceGroupManagers.resize", permission: permission + "update", do: s.resizeManager,
		},
		pattern("POST", zone, one+"/listManagedInstances"): {
			method: "instanceGroupManagers.listManagedInstances", permission: permission + "get", do: s.managedInstances,
		},
		pattern("GET", zone, one+"/listErrors"): {
			method: "instanceGroupManagers.listErrors", permission: permission + "get", do: s.managerErrors,
		},
	}
}

// manager is the one that the request is about.
func (s *groups) manager(r *request) (*manager, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.managers[r.key(cloud.KindGroup)]; m != nil {
		return m, nil
	}
	return nil, missing("projects/" + r.project + "/zones/" + r.zone + "/instanceGroupManagers/" + r.name)
}

func (s *groups) insertManager(r *request) (any, error) {
	asked := &computeapi.InstanceGroupManager{}
	if err := r.read(asked); err != nil {
		return nil, err
	}
	r.name = asked.Name
	if err := checkName(r.name); err != nil {
		return nil, err
	}
	m := &manager{
		key: r.key(cloud.KindGroup), created: s.cloud.Clock().Now(), asked: asked, size: asked.Size(),
	}
	if err := s.equip(r, m); err != nil {
		return nil, err
	}
	s.mu.Lock()
	taken := s.managers[m.key] != nil
	if !taken {
		m.id = s.ids.next()
		m.detail.owner = m.id
		s.managers[m.key] = m
	}
	s.mu.Unlock()
	if taken {
		return nil, exists(r.resource())
	}
	op := s.operations.record(r)
	s.grow(m)
	return op, nil
}

// equip finds a group's template and policy and sees whether they go together.
func (s *groups) equip(r *request, m *manager) error {
	link := m.asked.InstanceTemplate
	for _, version := range m.asked.Versions {
		link = version.InstanceTemplate
	}
	key, found := s.templates.find(r.project, link, "instanceTemplates")
	template, ok := found.(*computeapi.InstanceTemplate)
	if !ok {
		return invalid("Invalid value for field 'resource.instanceTemplate': '%s'. "+
			"The referenced instance template resource cannot be found.", link)
	}
	m.uses = []templateKey{key}
	instance := asInstance(template.Properties)
	if err := checkMachine(s.cloud, r, instance, "resource.instanceTemplate.properties"); err != nil {
		return err
	}
	m.detail = &machineDetail{instance: instance}
	mode := m.asked.TargetSizePolicy.Mode
	if mode != "" && mode != "BULK" && mode != "INDIVIDUAL" {
		return invalid("Invalid value for field 'resource.targetSizePolicy.mode': '%s'.", mode)
	}
	workload := m.asked.ResourcePolicies.WorkloadPolicy
	if workload == "" {
		return nil
	}
	key, found = s.templates.find(r.project, workload, "resourcePolicies")
	policy, ok := found.(*computeapi.ResourcePolicy)
	if !ok {
		return invalid("Invalid value for field 'resource.resourcePolicies.workloadPolicy': '%s'. "+
			"The referenced resource policy resource cannot be found.", workload)
	}
	if key.scope != "regions/"+cloud.RegionOf(r.zone) {
		return invalid("Invalid value for field 'resource.resourcePolicies.workloadPolicy': '%s'. "+
			"It is not in the region of the zone '%s'.", workload, r.zone)
	}
	m.uses = append(m.uses, key)
	return fits(m, topologyOf(policy), m.size)
}

// fits is nil if so many machines have the chips of a topology.
func fits(m *manager, topology string, size int) error {
	kind, _ := parseMachineType(m.detail.instance.MachineType)
	if chips := topologyChips(topology); topology != "" && size > 0 && chips != size*kind.units {
		return invalid("Invalid value for field 'resource.targetSize': '%d'. The accelerator topology '%s' has %d chips, "+
			"not %d machines of %d.", size, topology, chips, size, kind.units)
	}
	return nil
}

// userOf is the path of a managed group that refers to a resource, "" if none does.
func (s *groups) userOf(key templateKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.managers {
		if slices.Contains(m.uses, key) {
			return m.path()
		}
	}
	return ""
}

// allManagers are those of the request's zone, or of all zones if it has none.
func (s *groups) allManagers(r *request) []listItem {
	s.mu.Lock()
	var found []*manager
	for key, m := range s.managers {
		if key.Project == r.project && (r.zone == "" || key.Zone == r.zone) {
			found = append(found, m)
		}
	}
	s.mu.Unlock()
	var all []listItem
	for _, m := range found {
		all = append(all, listItem{scope: "zones/" + m.key.Zone, name: m.key.Name, message: s.showManager(m)})
	}
	return all
}

// patchManager replaces what a group states about all of its instances; those that
// are there stay as they are.
func (s *groups) patchManager(r *request) (any, error) {
	m, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	asked := &computeapi.InstanceGroupManager{}
	if err := r.read(asked); err != nil {
		return nil, err
	}
	rest := *asked
	rest.Fingerprint, rest.AllInstancesConfig = "", nil
	if !reflect.ValueOf(rest).IsZero() {
		return nil, invalid("The emulator of Compute Engine patches nothing but allInstancesConfig.")
	}
	if asked.Fingerprint != "" && asked.Fingerprint != s.showManager(m).Fingerprint {
		return nil, stale("Fingerprint does not match the current fingerprint of the instance group manager.")
	}
	s.mu.Lock()
	m.config = asked.AllInstancesConfig
	m.changes++
	s.mu.Unlock()
	return s.operations.record(r), nil
}

// deleteManager deletes a group with its machines; it is listed until they are gone.
func (s *groups) deleteManager(r *request) (any, error) {
	m, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	m.deleting = true
	s.mu.Unlock()
	op, err := s.cloud.Delete(m.key)
	if err == nil {
		return s.operations.show(op), nil
	}
	s.mu.Lock()
	delete(s.managers, m.key)
	s.mu.Unlock()
	return s.operations.record(r), nil
}

// resizeManager makes all machines of an empty group, or takes all of them.
func (s *groups) resizeManager(r *request) (any, error) {
	m, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(r.URL.Query().Get("size"))
	if err != nil || size < 0 {
		return nil, invalid("Invalid value for field 'size': '%s'.", r.URL.Query().Get("size"))
	}
	s.mu.Lock()
	before := m.size
	s.mu.Unlock()
	switch {
	case size == before:
	case size == 0:
		s.mu.Lock()
		m.size, m.grown = 0, false
		s.mu.Unlock()
		if _, err := s.cloud.Delete(m.key); err == nil {
			return s.operations.record(r), nil
		}
	case before == 0:
		if err := s.fitsPolicy(m, size); err != nil {
			return nil, err
		}
		s.mu.Lock()
		m.size, m.run = size, 0
		s.mu.Unlock()
		s.grow(m)
	default:
		return nil, invalid("The emulator of Compute Engine resizes a managed group from and to zero machines only.")
	}
	return s.operations.record(r), nil
}

func (s *groups) fitsPolicy(m *manager, size int) error {
	_, found := s.templates.find(m.key.Project, m.asked.ResourcePolicies.WorkloadPolicy, "resourcePolicies")
	policy, _ := found.(*computeapi.ResourcePolicy)
	return fits(m, topologyOf(policy), size)
}

// topologyOf is how the machines under a policy are wired, "" where it does not say.
func topologyOf(policy *computeapi.ResourcePolicy) string {
	if policy == nil || policy.WorkloadPolicy == nil {
		return ""
	}
	return policy.WorkloadPolicy.AcceleratorTopology
}

// topologyChips is how many chips "2x2x4" has, 0 if it is no topology.
func topologyChips(topology string) int {
	chips := 1
	for side := range strings.SplitSeq(topology, "x") {
		n, err := strconv.Atoi(side)
		if err != nil || n < 1 {
			return 0
		}
		chips *= n
	}
	return chips
}
