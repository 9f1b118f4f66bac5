package gcp

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/gce"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// computeService is a Compute Engine in which nothing happens by itself: the test
// says what becomes of machines, groups and operations.
type computeService struct {
	address string

	mu          sync.Mutex
	instances   map[string]*computepb.Instance // by "ZONE/NAME"
	groups      map[string]*computepb.InstanceGroupManager
	resizes     map[string]*computepb.InstanceGroupManagerResizeRequest // by the group's key
	templates   map[string]*computepb.InstanceTemplate                  // by name
	policies    map[string]*computepb.ResourcePolicy                    // by "REGION/NAME"
	errors      map[string][]*computepb.InstanceManagedByIgmError       // by the group's key
	operations  map[string]*computepb.Operation
	byID        map[string]string // operations by the request's id
	slow        map[string]bool   // methods whose operations stay open
	unreachable []string          // zones
	partial     *computepb.Warning
	perPage     int
	calls       []string                         // methods, in order
	bodies      map[string][]proto.Message       // of the inserts, by method
	reject      func(method string) *computeFail // instead of carrying the call out
	lose        func(method string) bool         // the answer
}

// computeFail is an error as Compute Engine answers it.
type computeFail struct {
	status          int
	reason, message string
}

func newComputeService(t testing.TB) *computeService {
	t.Helper()
	s := &computeService{
		instances: map[string]*computepb.Instance{}, groups: map[string]*computepb.InstanceGroupManager{},
		resizes: map[string]*computepb.InstanceGroupManagerResizeRequest{}, templates: map[string]*computepb.InstanceTemplate{},
		policies: map[string]*computepb.ResourcePolicy{}, errors: map[string][]*computepb.InstanceManagedByIgmError{},
		operations: map[string]*computepb.Operation{}, byID: map[string]string{}, slow: map[string]bool{}, perPage: 500,
		bodies: map[string][]proto.Message{},
	}
	server := httptest.NewServer(s.routes())
	t.Cleanup(server.Close)
	s.address = server.URL
	return s
}

// engine is a new engine, as another process has.
func (s *computeService) engine(t testing.TB, now func() time.Time) *gce.Engine {
	t.Helper()
	if now == nil {
		now = time.Now
	}
	e, err := gce.New(context.Background(), gcpengine.Config{Project: "p", Endpoint: s.address, Now: now, Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func (s *computeService) routes() http.Handler {
	mux := http.NewServeMux()
	const root = "/compute/v1/projects/p/"
	for pattern, call := range map[string]struct {
		method string
		do     func(*http.Request) (proto.Message, *computeFail)
	}{
		"GET " + root + "aggregated/instances":                              {"instances.list", s.listInstances},
		"GET " + root + "aggregated/instanceGroupManagers":                  {"groups.list", s.listGroups},
		"GET " + root + "global/instanceTemplates":                          {"templates.list", s.listTemplates},
		"GET " + root + "zones/{zone}/instances":                            {"instances.members", s.listMembers},
		"POST " + root + "zones/{zone}/instances":                           {"instances.insert", s.insertInstance},
		"GET " + root + "zones/{zone}/instances/{name}":                     {"instances.get", s.getInstance},
		"DELETE " + root + "zones/{zone}/instances/{name}":                  {"instances.delete", s.deleteInstance},
		"POST " + root + "zones/{zone}/instances/{name}/{verb}":             {"instances.change", s.changeInstance},
		"POST " + root + "global/instanceTemplates":                         {"templates.insert", s.insertTemplate},
		"GET " + root + "global/instanceTemplates/{name}":                   {"templates.get", s.getTemplate},
		"DELETE " + root + "global/instanceTemplates/{name}":                {"templates.delete", s.deleteTemplate},
		"POST " + root + "regions/{zone}/resourcePolicies":                  {"policies.insert", s.insertPolicy},
		"GET " + root + "regions/{zone}/resourcePolicies/{name}":            {"policies.get", s.getPolicy},
		"DELETE " + root + "regions/{zone}/resourcePolicies/{name}":         {"policies.delete", s.deletePolicy},
		"POST " + root + "zones/{zone}/instanceGroupManagers":               {"groups.insert", s.insertGroup},
		"GET " + root + "zones/{zone}/instanceGroupManagers/{name}":         {"groups.get", s.getGroup},
		"PATCH " + root + "zones/{zone}/instanceGroupManagers/{name}":       {"groups.patch", s.patchGroup},
		"DELETE " + root + "zones/{zone}/instanceGroupManagers/{name}":      {"groups.delete", s.deleteGroup},
		"POST " + root + "zones/{zone}/instanceGroupManagers/{name}/resize": {"groups.resize", s.resizeGroup},
		"GET " + root + "zones/{zone}/instanceGroupManagers/{name}/listErrors": {
			"groups.errors", s.listErrors,
		},
		"POST " + root + "zones/{zone}/instanceGroupManagers/{name}/resizeRequests": {
			"resizes.insert", s.insertResize,
		},
		"GET " + root + "zones/{zone}/instanceGroupManagers/{name}/resizeRequests/{request}": {
			"resizes.get", s.getResize,
		},
		"GET " + root + "zones/{zone}/operations/{name}":   {"operations.get", s.getOperation},
		"GET " + root + "regions/{zone}/operations/{name}": {"operations.get", s.getOperation},
		"GET " + root + "global/operations/{name}":         {"operations.get", s.getOperation},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, call.method, call.do) })
	}
	return mux
}

func (s *computeService) serve(w http.ResponseWriter, r *http.Request, method string, do func(*http.Request) (proto.Message, *computeFail)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, method)
	var fail *computeFail
	if s.reject != nil {
		fail = s.reject(method)
	}
	var answer proto.Message
	if fail == nil {
		r.SetPathValue("method", method)
		answer, fail = do(r)
	}
	if s.lose != nil && s.lose(method) {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	w.Header().Set("Content-Type", "application/json")
	if fail != nil {
		w.WriteHeader(fail.status)
		fmt.Fprintf(w, `{"error":{"code":%d,"message":%q,"errors":[{"reason":%q,"message":%[2]q,"domain":"global"}]}}`, fail.status, fail.message, fail.reason)
		return
	}
	text, err := protojson.Marshal(answer)
	if err != nil {
		panic(err)
	}
	if _, err := w.Write(text); err != nil {
		return // the client went away
	}
}

// begun is the operation of a call that changes something.
func (s *computeService) begun(r *http.Request) *computepb.Operation {
	method := r.PathValue("method")
	name := fmt.Sprintf("operation-%d", len(s.operations)+1)
	op := &computepb.Operation{Name: &name, Status: computepb.Operation_DONE.Enum(), OperationType: &method}
	if s.slow[method] {
		op.Status = computepb.Operation_RUNNING.Enum()
	}
	s.operations[name] = op
	s.byID[r.URL.Query().Get("requestId")] = name
	return op
}

// failedWith is what an operation has failed with.
func failedWith(code, message string) *computepb.Error {
	return &computepb.Error{Errors: []*computepb.Errors{{Code: &code, Message: &message}}}
}

// repeated is the operation of a request that was made before.
func (s *computeService) repeated(r *http.Request) (*computepb.Operation, bool) {
	op, ok := s.operations[s.byID[r.URL.Query().Get("requestId")]]
	return op, ok && r.URL.Query().Get("requestId") != ""
}

func zoned(r *http.Request) string { return r.PathValue("zone") + "/" + r.PathValue("name") }

func missing(r *http.Request) *computeFail {
	return &computeFail{404, "notFound", "The resource '" + r.URL.Path + "' was not found"}
}

// insert puts a new resource into one of the collections.
func insertInto[T proto.Message](s *computeService, r *http.Request, into map[string]T, made T, key func() string) (proto.Message, *computeFail) {
	if op, ok := s.repeated(r); ok {
		return op, nil
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = protojson.Unmarshal(body, made)
	}
	if err != nil {
		return nil, &computeFail{400, "invalid", err.Error()}
	}
	if _, taken := into[key()]; taken {
		return nil, &computeFail{409, "alreadyExists", "The resource '" + r.URL.Path + "/" + key() + "' already exists"}
	}
	into[key()] = made
	s.bodies[r.PathValue("method")] = append(s.bodies[r.PathValue("method")], proto.Clone(made))
	return s.begun(r), nil
}

func getFrom[T proto.Message](r *http.Request, from map[string]T, key string) (proto.Message, *computeFail) {
	found, ok := from[key]
	if !ok {
		return nil, missing(r)
	}
	return proto.Clone(found), nil
}

func deleteFrom[T proto.Message](s *computeService, r *http.Request, from map[string]T, key string) (proto.Message, *computeFail) {
	if op, ok := s.repeated(r); ok {
		return op, nil
	}
	if _, ok := from[key]; !ok {
		return nil, missing(r)
	}
	if !s.slow[r.PathValue("method")] {
		delete(from, key)
	}
	return s.begun(r), nil
}

func (s *computeService) insertInstance(r *http.Request) (proto.Message, *computeFail) {
	made := &computepb.Instance{}
	return insertInto(s, r, s.instances, made, func() string {
		made.Zone = new("https://www.googleapis.com/compute/v1/projects/p/zones/" + r.PathValue("zone"))
		made.Status, made.CreationTimestamp = new("PROVISIONING"), new("2026-01-02T03:04:05.678-08:00")
		made.LabelFingerprint = new("l0")
		return r.PathValue("zone") + "/" + made.GetName()
	})
}

func (s *computeService) getInstance(r *http.Request) (proto.Message, *computeFail) {
	return getFrom(r, s.instances, zoned(r))
}

func (s *computeService) deleteInstance(r *http.Request) (proto.Message, *computeFail) {
	return deleteFrom(s, r, s.instances, zoned(r))
}

func (s *computeService) insertTemplate(r *http.Request) (proto.Message, *computeFail) {
	made := &computepb.InstanceTemplate{}
	return insertInto(s, r, s.templates, made, func() string {
		made.CreationTimestamp = new("2026-01-02T03:04:05.678-08:00")
		return made.GetName()
	})
}

func (s *computeService) getTemplate(r *http.Request) (proto.Message, *computeFail) {
	return getFrom(r, s.templates, r.PathValue("name"))
}

func (s *computeService) deleteTemplate(r *http.Request) (proto.Message, *computeFail) {
	for _, group := range s.groups {
		if path.Base(group.GetInstanceTemplate()) == r.PathValue("name") {
			return nil, &computeFail{400, "resourceInUseByAnotherResource", "The instance_template resource is already being used by '" + group.GetName() + "'"}
		}
	}
	return deleteFrom(s, r, s.templates, r.PathValue("name"))
}

func (s *computeService) insertPolicy(r *http.Request) (proto.Message, *computeFail) {
	made := &computepb.ResourcePolicy{}
	return insertInto(s, r, s.policies, made, func() string { return r.PathValue("zone") + "/" + made.GetName() })
}

func (s *computeService) getPolicy(r *http.Request) (proto.Message, *computeFail) {
	return getFrom(r, s.policies, zoned(r))
}

func (s *computeService) deletePolicy(r *http.Request) (proto.Message, *computeFail) {
	for _, group := range s.groups {
		if path.Base(group.GetResourcePolicies().GetWorkloadPolicy()) == r.PathValue("name") {
			return nil, &computeFail{400, "resourceInUseByAnotherResource", "The resource_policy resource is already being used by '" + group.GetName() + "'"}
		}
	}
	return deleteFrom(s, r, s.policies, zoned(r))
}

func (s *computeService) insertGroup(r *http.Request) (proto.Message, *computeFail) {
	made := &computepb.InstanceGroupManager{}
	return insertInto(s, r, s.groups, made, func() string {
		made.Zone = new("https://www.googleapis.com/compute/v1/projects/p/zones/" + r.PathValue("zone"))
		made.Fingerprint, made.CreationTimestamp = new("g0"), new("2026-01-02T03:04:06Z")
		return r.PathValue("zone") + "/" + made.GetName()
	})
}

func (s *computeService) getGroup(r *http.Request) (proto.Message, *computeFail) {
	return getFrom(r, s.groups, zoned(r))
}

func (s *computeService) deleteGroup(r *http.Request) (proto.Message, *computeFail) {
	op, fail := deleteFrom(s, r, s.groups, zoned(r))
	if _, there := s.groups[zoned(r)]; fail == nil && !there {
		delete(s.resizes, zoned(r))
		maps.DeleteFunc(s.instances, func(key string, i *computepb.Instance) bool {
			return i.GetName() != i.GetLabels()[mark.SliceLabel] && r.PathValue("zone")+"/"+i.GetLabels()[mark.SliceLabel] == zoned(r)
		})
	}
	return op, fail
}

func (s *computeService) patchGroup(r *http.Request) (proto.Message, *computeFail) {
	patch := &computepb.InstanceGroupManager{}
	if body, err := io.ReadAll(r.Body); err != nil || protojson.Unmarshal(body, patch) != nil {
		return nil, &computeFail{400, "invalid", "no group"}
	}
	group := s.groups[zoned(r)]
	if group.GetFingerprint() != patch.GetFingerprint() {
		return nil, &computeFail{412, "conditionNotMet", "Invalid fingerprint."}
	}
	group.AllInstancesConfig, group.Fingerprint = patch.GetAllInstancesConfig(), new(group.GetFingerprint()+"+")
	return s.begun(r), nil
}

func (s *computeService) resizeGroup(r *http.Request) (proto.Message, *computeFail) {
	var size int32
	if _, err := fmt.Sscan(r.URL.Query().Get("size"), &size); err != nil {
		return nil, &computeFail{400, "invalid", "no size"}
	}
	s.groups[zoned(r)].TargetSize = &size
	return s.begun(r), nil
}

func (s *computeService) insertResize(r *http.Request) (proto.Message, *computeFail) {
	made := &computepb.InstanceGroupManagerResizeRequest{}
	return insertInto(s, r, s.resizes, made, func() string { made.State = new("ACCEPTED"); return zoned(r) })
}

func (s *computeService) getResize(r *http.Request) (proto.Message, *computeFail) {
	return getFrom(r, s.resizes, zoned(r))
}

func (s *computeService) getOperation(r *http.Request) (proto.Message, *computeFail) {
	return getFrom(r, s.operations, r.PathValue("name"))
}

// fill gives a group machines in a state, as many as are missing of it.
func (s *computeService) fill(spec schema.SliceSpec, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.templates[spec.Name].GetProperties()
	for n := range spec.Hosts {
		name := fmt.Sprintf("%s-%04d", spec.Name, n)
		s.instances[spec.Zone+"/"+name] = &computepb.Instance{
			Name: &name, Zone: new("zones/" + spec.Zone), Status: &state, Labels: maps.Clone(p.GetLabels()), LabelFingerprint: new("l0"),
			Metadata: proto.CloneOf(p.GetMetadata()), Tags: proto.CloneOf(p.GetTags()), Scheduling: proto.CloneOf(p.GetScheduling()),
			NetworkInterfaces: []*computepb.NetworkInterface{proto.CloneOf(p.GetNetworkInterfaces()[0])},
		}
	}
	s.groups[spec.Zone+"/"+spec.Name].TargetSize = new(int32(spec.Hosts))
}

// do changes the service's resources.
func (s *computeService) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// counts is how often a method was called.
func (s *computeService) counts(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.calls {
		if each == method {
			n++
		}
	}
	return n
}

// left are all resources that there are.
func (s *computeService) left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	left = slices.AppendSeq(left, maps.Keys(s.instances))
	left = slices.AppendSeq(left, maps.Keys(s.groups))
	left = slices.AppendSeq(left, maps.Keys(s.resizes))
	left = slices.AppendSeq(left, maps.Keys(s.templates))
	left = slices.AppendSeq(left, maps.Keys(s.policies))
	return left
}
