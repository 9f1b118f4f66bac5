package compute

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// templateKey names a resource that is only a description: an instance template or a
// resource policy.
type templateKey struct {
	project, scope, collection, name string
}

func (k templateKey) path() string {
	return "projects/" + k.project + "/" + k.scope + "/" + k.collection + "/" + k.name
}

func (r *request) templateKey() templateKey {
	collection, _, _ := strings.Cut(r.endpoint.method, ".")
	return templateKey{r.project, r.scope(), collection, r.name}
}

// templates serves the resources that are only descriptions, and keeps them. Those
// that are kept never change.
type templates struct {
	cloud      *cloud.Cloud
	operations *operations
	ids        *ids
	userOf     func(templateKey) string // path of a managed group that refers to the resource, else ""

	mu  sync.Mutex
	all map[templateKey]any
}

// collection is one kind of such resources.
type collection struct {
	name  string // "instanceTemplates"
	kind  string // "compute#instanceTemplate"
	scope string // "global" or "regions/{region}"
	empty func() any
	check func(*request, any) error
}

func (s *templates) collections() []collection {
	templates := collection{
		name: "instanceTemplates", kind: "compute#instanceTemplate", scope: "global",
		empty: func() any { return &computeapi.InstanceTemplate{} }, check: s.checkTemplate,
	}
	regional := templates
	regional.scope = "regions/{region}"
	return []collection{templates, regional, {
		name: "resourcePolicies", kind: "compute#resourcePolicy", scope: "regions/{region}",
		empty: func() any { return &computeapi.ResourcePolicy{} }, check: checkPolicy,
	}}
}

func (s *templates) endpoints() map[string]endpoint {
	found := map[string]endpoint{}
	for _, c := range s.collections() {
		permission := "compute." + c.name + "."
		found[pattern("POST", c.scope, c.name)] = endpoint{
			method: c.name + ".insert", permission: permission + "create", do: s.insert(c),
		}
		found[pattern("GET", c.scope, c.name)] = endpoint{
			method: c.name + ".list", permission: permission + "list", do: func(r *request) (any, error) {
				return s.operations.lists.listed(r, c.kind+"List", s.list(r.project, c.name, r.scope()))
			},
		}
		found[pattern("GET", c.scope, c.name+"/{name}")] = endpoint{
			method: c.name + ".get", permission: permission + "get", do: s.get,
		}
		found[pattern("DELETE", c.scope, c.name+"/{name}")] = endpoint{
			method: c.name + ".delete", permission: permission + "delete", do: s.delete,
		}
		found["GET /compute/v1/projects/{project}/aggregated/"+c.name] = endpoint{
			method: c.name + ".aggregatedList", permission: permission + "list", do: func(r *request) (any, error) {
				return s.operations.lists.aggregated(r, c.name, s.list(r.project, c.name, ""))
			},
		}
	}
	return found
}

func (s *templates) checkTemplate(r *request, m any) error {
	template, _ := m.(*computeapi.InstanceTemplate)
	return checkMachine(s.cloud, r, asInstance(template.Properties), "resource.properties")
}

func checkPolicy(_ *request, m any) error {
	policy, _ := m.(*computeapi.ResourcePolicy)
	workload := policy.WorkloadPolicy
	switch {
	case workload == nil:
		return invalid("The emulator of Compute Engine knows no resource policy but a workload policy.")
	case workload.Type != "HIGH_THROUGHPUT" && workload.Type != "HIGH_AVAILABILITY":
		return invalid("Invalid value for field 'resource.workloadPolicy.type': '%s'.", workload.Type)
	case workload.AcceleratorTopology != "" && topologyChips(workload.AcceleratorTopology) == 0:
		return invalid("Invalid value for field 'resource.workloadPolicy.acceleratorTopology': '%s'.", workload.AcceleratorTopology)
	}
	return nil
}

func (s *templates) insert(c collection) func(*request) (any, error) {
	return func(r *request) (any, error) {
		made := c.empty()
		if err := r.read(made); err != nil {
			return nil, err
		}
		setText(made, "kind", c.kind)
		r.name = textOf(made, "name")
		if err := cmp.Or(checkName(r.name), c.check(r, made)); err != nil {
			return nil, err
		}
		key := r.templateKey()
		setText(made, "selfLink", linkRoot+key.path())
		setText(made, "creationTimestamp", timestamp(s.cloud.Clock().Now()))
		if r.region != "" {
			setText(made, "region", linkRoot+"projects/"+r.project+"/regions/"+r.region)
		}
		s.mu.Lock()
		_, taken := s.all[key]
		if !taken {
			setNumber(made, "id", s.ids.next())
			s.all[key] = made
		}
		s.mu.Unlock()
		if taken {
			return nil, exists(key.path())
		}
		return s.operations.record(r), nil
	}
}

// list are the resources of a collection in one scope, or in all for "".
func (s *templates) list(project, collection, scope string) []listItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []listItem
	for key, message := range s.all {
		if key.project == project && key.collection == collection && (scope == "" || key.scope == scope) {
			all = append(all, listItem{scope: key.scope, name: key.name, message: message})
		}
	}
	return all
}

func (s *templates) get(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.all[r.templateKey()]
	if !ok {
		return nil, missing(r.resource())
	}
	return found, nil
}

// delete deletes what no managed group uses.
func (s *templates) delete(r *request) (any, error) {
	key := r.templateKey()
	user := s.userOf(key)
	s.mu.Lock()
	_, ok := s.all[key]
	if ok && user == "" {
		delete(s.all, key)
	}
	s.mu.Unlock()
	switch {
	case !ok:
		return nil, missing(r.resource())
	case user != "":
		return nil, inUse(r.resource(), user)
	}
	return s.operations.record(r), nil
}

// find is the resource that a link names: a URL, ".../projects/p/global/instanceTemplates/n",
// or, in the project of the request, "global/instanceTemplates/n".
func (s *templates) find(project, link, collection string) (templateKey, any) {
	parts := strings.Split(strings.TrimPrefix(link, linkRoot), "/")
	if i := slices.Index(parts, "projects"); i >= 0 && len(parts) > i+2 {
		project, parts = parts[i+1], parts[i+2:]
	}
	n := len(parts)
	if n < 3 || parts[n-2] != collection || parts[0] != "global" && parts[0] != "regions" {
		return templateKey{}, nil
	}
	key := templateKey{project, strings.Join(parts[:n-2], "/"), collection, parts[n-1]}
	s.mu.Lock()
	defer s.mu.Unlock()
	return key, s.all[key]
}
