package emulator

import (
	"cmp"
	"slices"
	"strings"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// keptKey names a resource that is only a description: an instance template or a
// resource policy.
type keptKey struct {
	project, scope, collection, name string
}

func (k keptKey) path() string {
	return "projects/" + k.project + "/" + k.scope + "/" + k.collection + "/" + k.name
}

// keptResource never changes.
type keptResource = proto.Message

func (r *computeRequest) keptKey() keptKey {
	collection, _, _ := strings.Cut(r.call.method, ".")
	return keptKey{r.project, r.scope(), collection, r.name}
}

// keptCollection is one kind of such resources.
type keptCollection struct {
	name  string // "instanceTemplates"
	kind  string // "compute#instanceTemplate"
	scope string // "global" or "regions/{region}"
	empty func() proto.Message
	check func(*computeRequest, proto.Message) error
}

func (s *compute) keptCollections() []keptCollection {
	templates := keptCollection{
		name: "instanceTemplates", kind: "compute#instanceTemplate", scope: "global",
		empty: func() proto.Message { return &computepb.InstanceTemplate{} }, check: s.checkTemplate,
	}
	regional := templates
	regional.scope = "regions/{region}"
	return []keptCollection{templates, regional, {
		name: "resourcePolicies", kind: "compute#resourcePolicy", scope: "regions/{region}",
		empty: func() proto.Message { return &computepb.ResourcePolicy{} }, check: checkPolicy,
	}}
}

func (s *compute) keptCalls() map[string]computeCall {
	calls := map[string]computeCall{}
	for _, c := range s.keptCollections() {
		permission := "compute." + c.name + "."
		calls[pattern("POST", c.scope, c.name)] = computeCall{
			method: c.name + ".insert", permission: permission + "create", do: s.insertKept(c),
		}
		calls[pattern("GET", c.scope, c.name)] = computeCall{
			method: c.name + ".list", permission: permission + "list", do: func(r *computeRequest) (any, error) {
				return s.listed(r, c.kind+"List", s.allKept(r.project, c.name, r.scope()))
			},
		}
		calls[pattern("GET", c.scope, c.name+"/{name}")] = computeCall{
			method: c.name + ".get", permission: permission + "get", do: s.getKept,
		}
		calls[pattern("DELETE", c.scope, c.name+"/{name}")] = computeCall{
			method: c.name + ".delete", permission: permission + "delete", do: s.deleteKept,
		}
		calls["GET /compute/v1/projects/{project}/aggregated/"+c.name] = computeCall{
			method: c.name + ".aggregatedList", permission: permission + "list", do: func(r *computeRequest) (any, error) {
				return s.aggregated(r, c.name, s.allKept(r.project, c.name, ""))
			},
		}
	}
	return calls
}

func (s *compute) checkTemplate(r *computeRequest, m proto.Message) error {
	template, _ := m.(*computepb.InstanceTemplate)
	return s.checkMachine(r, asInstance(template.GetProperties()), "resource.properties")
}

func checkPolicy(_ *computeRequest, m proto.Message) error {
	policy, _ := m.(*computepb.ResourcePolicy)
	workload := policy.GetWorkloadPolicy()
	switch {
	case workload == nil:
		return computeInvalid("The emulator of Compute Engine knows no resource policy but a workload policy.")
	case workload.GetType() != "HIGH_THROUGHPUT" && workload.GetType() != "HIGH_AVAILABILITY":
		return computeInvalid("Invalid value for field 'resource.workloadPolicy.type': '%s'.", workload.GetType())
	case workload.GetAcceleratorTopology() != "" && topologyChips(workload.GetAcceleratorTopology()) == 0:
		return computeInvalid("Invalid value for field 'resource.workloadPolicy.acceleratorTopology': '%s'.", workload.GetAcceleratorTopology())
	}
	return nil
}

func (s *compute) insertKept(c keptCollection) func(*computeRequest) (any, error) {
	return func(r *computeRequest) (any, error) {
		made := c.empty()
		if err := r.read(made); err != nil {
			return nil, err
		}
		setText(made, "kind", c.kind)
		r.name = textOf(made, "name")
		if err := cmp.Or(checkComputeName(r.name), c.check(r, made)); err != nil {
			return nil, err
		}
		key := r.keptKey()
		setText(made, "selfLink", computeRoot+key.path())
		setText(made, "creationTimestamp", computeTime(s.cloud.Clock().Now()))
		if r.region != "" {
			setText(made, "region", computeRoot+"projects/"+r.project+"/regions/"+r.region)
		}
		s.mu.Lock()
		_, taken := s.kept[key]
		if !taken {
			setNumber(made, "id", s.newID())
			s.kept[key] = made
		}
		s.mu.Unlock()
		if taken {
			return nil, computeExists(key.path())
		}
		return s.record(r), nil
	}
}

// allKept are the resources of a collection in one scope, or in all for "".
func (s *compute) allKept(project, collection, scope string) []listItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []listItem
	for key, message := range s.kept {
		if key.project == project && key.collection == collection && (scope == "" || key.scope == scope) {
			all = append(all, listItem{scope: key.scope, name: key.name, message: message})
		}
	}
	return all
}

func (s *compute) getKept(r *computeRequest) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.kept[r.keptKey()]
	if !ok {
		return nil, computeMissing(r.resource())
	}
	return found, nil
}

// deleteKept deletes what no managed group uses.
func (s *compute) deleteKept(r *computeRequest) (any, error) {
	key := r.keptKey()
	s.mu.Lock()
	_, ok := s.kept[key]
	user := s.userOf(key)
	if ok && user == nil {
		delete(s.kept, key)
	}
	s.mu.Unlock()
	switch {
	case !ok:
		return nil, computeMissing(r.resource())
	case user != nil:
		return nil, computeInUse(r.resource(), user.path())
	}
	return s.record(r), nil
}

// userOf is a managed group that refers to a resource. The lock is held.
func (s *compute) userOf(key keptKey) *manager {
	for _, m := range s.managers {
		if slices.Contains(m.uses, key) {
			return m
		}
	}
	return nil
}

// find is the resource that a link names, whole or in part: ".../projects/p/global/instanceTemplates/n".
func (s *compute) find(link, collection string) (keptKey, keptResource) {
	parts := strings.Split(strings.TrimPrefix(link, computeRoot), "/")
	i := slices.Index(parts, "projects")
	if i < 0 || len(parts) < i+5 || parts[len(parts)-2] != collection {
		return keptKey{}, nil
	}
	key := keptKey{parts[i+1], strings.Join(parts[i+2:len(parts)-2], "/"), collection, parts[len(parts)-1]}
	s.mu.Lock()
	defer s.mu.Unlock()
	return key, s.kept[key]
}

func setText(m proto.Message, field, value string) {
	setField(m, field, protoreflect.ValueOfString(value))
}

func setNumber(m proto.Message, field string, value uint64) {
	setField(m, field, protoreflect.ValueOfUint64(value))
}

// setField sets a field if the message has one of that JSON name.
func setField(m proto.Message, field string, value protoreflect.Value) {
	if f := m.ProtoReflect().Descriptor().Fields().ByJSONName(field); f != nil {
		m.ProtoReflect().Set(f, value)
	}
}

func textOf(m proto.Message, field string) string {
	f := m.ProtoReflect().Descriptor().Fields().ByJSONName(field)
	return m.ProtoReflect().Get(f).String()
}
