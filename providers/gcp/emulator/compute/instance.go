package compute

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// instances serves machines, those of managed groups too.
type instances struct {
	cloud      *cloud.Cloud
	operations *operations

	mu        sync.Mutex
	rendered  map[cloud.Key]renderedGroup
	preempted map[cloud.Key]int64 // IDs of groups whose preemption has its operation
}

func newInstances(c *cloud.Cloud, ops *operations) *instances {
	return &instances{cloud: c, operations: ops, rendered: map[cloud.Key]renderedGroup{}, preempted: map[cloud.Key]int64{}}
}

func (s *instances) endpoints() map[string]endpoint {
	const zone = "zones/{zone}"
	found := map[string]endpoint{
		pattern("POST", zone, "instances"): {method: "instances.insert", permission: "compute.instances.create", creates: true, do: s.insertInstance},
		pattern("GET", zone, "instances"): {method: "instances.list", permission: "compute.instances.list", do: func(r *request) (any, error) {
			return s.operations.lists.listed(r, "compute#instanceList", s.allMachines(r.project, r.zone))
		}},
		"GET /compute/v1/projects/{project}/aggregated/instances": {
			method: "instances.aggregatedList", permission: "compute.instances.list", do: func(r *request) (any, error) {
				return s.operations.lists.aggregated(r, "instances", s.allMachines(r.project, ""))
			},
		},
		pattern("GET", zone, "instances/{name}"): {method: "instances.get", permission: "compute.instances.get", do: s.getInstance},
		pattern("DELETE", zone, "instances/{name}"): {
			method: "instances.delete", permission: "compute.instances.delete", do: s.actOn(s.cloud.Delete),
		},
		pattern("GET", zone, "instances/{name}/getGuestAttributes"): {
			method: "instances.getGuestAttributes", permission: "compute.instances.getGuestAttributes", do: s.guestAttributes,
		},
	}
	for verb, do := range map[string]func(*request) (any, error){
		"stop": s.actOn(s.cloud.Stop), "start": s.actOn(s.cloud.Start), "reset": s.actOn(s.cloud.Restart),
		"setLabels": s.setLabels, "setMetadata": s.setMetadata, "setTags": s.setTags,
		"addAccessConfig": s.setAccess(true), "updateAccessConfig": s.setAccess(true), "deleteAccessConfig": s.setAccess(false),
	} {
		found[pattern("POST", zone, "instances/{name}/"+verb)] = endpoint{
			method: "instances." + verb, permission: "compute.instances." + verb, do: do,
		}
	}
	return found
}

// insertInstance asks the model for one machine. What the request itself is wrong
// about is an error at once, a quota or a stockout the operation's; but a quota of
// zero is rejected at once: the service does both.
func (s *instances) insertInstance(r *request) (any, error) {
	instance := &computeapi.Instance{}
	if err := r.read(instance); err != nil {
		return nil, err
	}
	r.name = instance.Name
	if err := checkName(r.name); err != nil {
		return nil, err
	}
	if err := checkMachine(s.cloud, r, instance, "resource"); err != nil {
		return nil, err
	}
	if _, _, taken := s.locate(r); taken {
		return nil, exists(r.resource())
	}
	op, err := s.cloud.Allocate(s.spec(r.key(cloud.KindInstance), &machineDetail{instance: instance}, 1, s.changed))
	rejected, ok := errors.AsType[*cloud.Error](err)
	if ok && rejected.Reason == cloud.ReasonQuota && rejected.Limit > 0 {
		return s.operations.rejected(r, rejected), nil
	}
	if err != nil {
		return nil, err
	}
	return s.operations.show(op), nil
}

// allMachines are a project's machines in one zone, or in all for "".
func (s *instances) allMachines(project, zone string) []listItem {
	var all []listItem
	for _, kind := range []cloud.Kind{cloud.KindInstance, cloud.KindGroup} {
		for _, g := range s.cloud.Groups(project, kind, zone) {
			all = append(all, s.machines(g)...)
		}
	}
	return all
}

// locate is the group of the machine that the request is about, and which of
// its machines that is.
func (s *instances) locate(r *request) (g *cloud.Group, worker int, ok bool) {
	if g, ok := s.cloud.Group(r.key(cloud.KindInstance)); ok {
		return g, 0, true
	}
	for _, g := range s.cloud.Groups(r.project, cloud.KindGroup, r.zone) {
		if i := slices.IndexFunc(g.Hosts, func(h cloud.Host) bool { return h.Instance == r.name }); i >= 0 {
			return g, i, true
		}
	}
	return nil, 0, false
}

// shown is the machine as it was shown last.
func (s *instances) shown(r *request) (*computeapi.Instance, *cloud.Group, error) {
	g, worker, ok := s.locate(r)
	if !ok {
		return nil, nil, missing(r.resource())
	}
	instance, _ := s.machines(g)[worker].message.(*computeapi.Instance)
	return instance, g, nil
}

func (s *instances) getInstance(r *request) (any, error) {
	instance, _, err := s.shown(r)
	return instance, err
}

// actOn does to the request's machine what the model knows how to do.
func (s *instances) actOn(do func(cloud.Key) (cloud.Operation, error)) func(*request) (any, error) {
	return func(r *request) (any, error) {
		if g, _, ok := s.locate(r); ok && g.Kind == cloud.KindGroup {
			return nil, invalid("The emulator of Compute Engine knows no %s for a machine of a managed group.", r.endpoint.method)
		}
		op, err := do(r.key(cloud.KindInstance))
		if err != nil {
			return nil, err
		}
		return s.operations.show(op), nil
	}
}

// change replaces the attributes of a machine, if it is still as the caller has
// seen it.
func (s *instances) change(r *request, stale func(*computeapi.Instance) error, f func(*cloud.Spec, *computeapi.Instance)) (any, error) {
	shown, g, err := s.shown(r)
	if err == nil {
		err = stale(shown)
	}
	if err != nil {
		return nil, err
	}
	op, err := s.cloud.Update(g.Key, func(spec *cloud.Spec) {
		old, _ := spec.Detail.(*machineDetail)
		next := copyInstance(old.of(r.name))
		f(spec, next)
		spec.Detail = old.with(r.name, next)
	})
	if err != nil {
		return nil, err
	}
	op.Verb, op.Target = r.endpoint.method, r.name
	return s.operations.show(op), nil
}

func (s *instances) setLabels(r *request) (any, error) {
	asked := &computeapi.LabelsRequest{}
	if err := r.read(asked); err != nil {
		return nil, err
	}
	if err := checkLabels(asked.Labels, "resource"); err != nil {
		return nil, err
	}
	return s.change(r, func(shown *computeapi.Instance) error {
		if asked.LabelFingerprint != shown.LabelFingerprint {
			return stale("Labels fingerprint either invalid or resource labels have changed")
		}
		return nil
	}, func(spec *cloud.Spec, instance *computeapi.Instance) {
		spec.Labels, instance.Labels = maps.Clone(asked.Labels), asked.Labels
	})
}

func (s *instances) setMetadata(r *request) (any, error) {
	asked := computeapi.Metadata{}
	if err := r.read(&asked); err != nil {
		return nil, err
	}
	return s.change(r, func(shown *computeapi.Instance) error {
		if asked.Fingerprint != shown.Metadata.Fingerprint {
			return stale("Supplied fingerprint does not match current metadata fingerprint.")
		}
		return nil
	}, func(spec *cloud.Spec, instance *computeapi.Instance) {
		spec.Metadata, instance.Metadata = metadataOf(asked), asked
	})
}

func (s *instances) setTags(r *request) (any, error) {
	asked := computeapi.Tags{}
	if err := r.read(&asked); err != nil {
		return nil, err
	}
	return s.change(r, func(shown *computeapi.Instance) error {
		if asked.Fingerprint != shown.Tags.Fingerprint {
			return stale("Supplied fingerprint does not match current tags fingerprint.")
		}
		return nil
	}, func(_ *cloud.Spec, instance *computeapi.Instance) { instance.Tags = asked })
}

// setAccess gives the machine's interface an external address, or takes it.
func (s *instances) setAccess(external bool) func(*request) (any, error) {
	return func(r *request) (any, error) {
		access := computeapi.AccessConfig{Name: "External NAT", Type: "ONE_TO_ONE_NAT"}
		if external {
			if err := r.read(&access); err != nil {
				return nil, err
			}
		}
		add := r.endpoint.method == "instances.addAccessConfig"
		return s.change(r, func(shown *computeapi.Instance) error {
			switch has := externalOf(shown); {
			case add && has:
				return invalid("At most one access config currently supported.")
			case !add && !has:
				return invalid("Invalid value for field 'accessConfig': there is none.")
			}
			return nil
		}, func(spec *cloud.Spec, instance *computeapi.Instance) {
			spec.External = external
			instance.NetworkInterfaces[0].AccessConfigs = nil
			if external {
				instance.NetworkInterfaces[0].AccessConfigs = []computeapi.AccessConfig{access}
			}
		})
	}
}

// guestAttributes answers for "NAMESPACE/" or "NAMESPACE/KEY".
func (s *instances) guestAttributes(r *request) (any, error) {
	path := r.URL.Query().Get("queryPath")
	if key := r.URL.Query().Get("variableKey"); key != "" {
		path = key
	}
	g, worker, ok := s.locate(r)
	if !ok {
		return nil, missing(r.resource())
	}
	namespace, key, _ := strings.Cut(path, "/")
	values := computeapi.GuestAttributesValue{}
	for at, value := range s.guestAttributesOf(g, worker) {
		if (namespace == "" || at.Namespace == namespace) && (key == "" || at.Key == key) {
			values.Items = append(values.Items, computeapi.GuestAttribute{
				Namespace: at.Namespace, Key: at.Key, Value: value,
			})
		}
	}
	if len(values.Items) == 0 {
		return nil, &apiError{status: http.StatusNotFound, reason: "notFound",
			message: "The resource 'guestAttributes/" + path + "' of type 'Guest Attribute' was not found."}
	}
	return &computeapi.GuestAttributes{Kind: "compute#guestAttributes", QueryPath: path, QueryValue: values}, nil
}

func (s *instances) guestAttributesOf(g *cloud.Group, worker int) map[cloud.GuestAttributeKey]string {
	if worker >= len(g.Hosts) {
		return nil // it has no machine yet
	}
	return s.cloud.GuestAttributes(g.Hosts[worker].ID)
}

// changed follows every change of a machine or of a group's machines.
func (s *instances) changed(g *cloud.Group) {
	s.recordPreemption(g)
	if g.State == cloud.StateGone {
		s.mu.Lock()
		delete(s.rendered, g.Key)
		s.mu.Unlock()
	}
}

// recordPreemption records, once for each machine, the operation with which the
// service reports a preemption.
func (s *instances) recordPreemption(g *cloud.Group) {
	if g.Cause != cloud.CausePreempted {
		return
	}
	s.mu.Lock()
	known := s.preempted[g.Key] == g.ID
	if s.preempted[g.Key] = g.ID; g.State == cloud.StateGone {
		delete(s.preempted, g.Key)
	}
	s.mu.Unlock()
	if known {
		return
	}
	names := []string{g.Name}
	if g.Kind == cloud.KindGroup {
		names = nil
		for i := range g.Hosts {
			names = append(names, g.Hosts[i].Instance)
		}
	}
	for _, name := range names {
		s.cloud.Record(cloud.Key{Project: g.Project, Zone: g.Zone, Kind: cloud.KindInstance, Name: name}, preemptedType, 0, nil)
	}
}
