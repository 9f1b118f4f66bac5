package emulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// computeRoot is what the service's own links begin with, wherever it is reached.
const computeRoot = "https://www.googleapis.com/compute/v1/"

// compute is the API of Compute Engine. Machines and groups of machines are
// groups of the model; what the model does not know, such as templates,
// policies and managed groups without machines, is kept here.
//
// mu is never held while the model is called: the model calls back.
type compute struct {
	cloud *cloud.Cloud
	mux   *http.ServeMux

	misread map[string]*misreader[listItem] // by the collection's name

	mu       sync.Mutex
	ids      uint64
	kept     map[keptKey]keptResource
	managers map[cloud.Key]*manager
	asked    requestLog
	failures failureLog
	rendered map[cloud.Key]renderedGroup
	told     map[cloud.Key]int64 // IDs of groups whose preemption has its operation
}

func newCompute(c *cloud.Cloud) *compute {
	s := &compute{
		misread: map[string]*misreader[listItem]{},
		cloud:   c, mux: http.NewServeMux(), ids: 1 << 60, kept: map[keptKey]keptResource{}, managers: map[cloud.Key]*manager{},
		asked: newRequestLog(), failures: failureLog{reasons: map[string]*cloud.Error{}}, rendered: map[cloud.Key]renderedGroup{}, told: map[cloud.Key]int64{},
	}
	for _, of := range []string{"instances", "instanceGroupManagers", "instanceTemplates"} {
		s.misread[of] = &misreader[listItem]{
			of: of, cloud: c, zone: func(i listItem) string { return strings.TrimPrefix(i.scope, "zones/") }, copied: copiedItem,
		}
	}

	for _, calls := range []map[string]computeCall{
		s.instanceCalls(), s.groupCalls(), s.resizeCalls(), s.keptCalls(), s.operationCalls(), s.catalogCalls(), s.projectCalls(),
	} {
		for pattern, call := range calls {
			s.mux.Handle(pattern, s.handler(call))
		}
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeComputeError(w, &computeError{status: http.StatusNotImplemented, reason: "notImplemented",
			message: "the emulator of Compute Engine does not know " + r.Method + " " + r.URL.Path})
	})
	return s
}

// mountCompute makes Compute Engine answer, and the two APIs that say of a
// project what it may use.
func (e *Emulator) mountCompute() {
	s := newCompute(e.cloud)
	e.Mount("/compute/", s.mux)
	e.Mount("/v1/projects/", s.mux)
	e.Mount("/v3/projects/", s.mux)
}

// computeCall is one method of the API.
type computeCall struct {
	method     string // "instances.insert"
	permission string // "compute.instances.create"
	api        string // "": Compute Engine's
	creates    bool   // counts for the limit of creations
	do         func(r *computeRequest) (any, error)
}

// computeRequest is one request, its path taken apart.
type computeRequest struct {
	*http.Request
	project, zone, region, name string
	call                        computeCall
}

// scope is "zones/us-west4-a", "regions/us-west4" or "global".
func (r *computeRequest) scope() string { return computeScope(r.zone, r.region) }

func computeScope(zone, region string) string {
	switch {
	case zone != "":
		return "zones/" + zone
	case region != "":
		return "regions/" + region
	}
	return "global"
}

// resource is what the request is about, "projects/p/zones/z/instances/n".
func (r *computeRequest) resource() string {
	collection, _, _ := strings.Cut(r.call.method, ".")
	if r.name == "" {
		return "projects/" + r.project
	}
	return "projects/" + r.project + "/" + r.scope() + "/" + collection + "/" + r.name
}

// key is what the request is about in the model.
func (r *computeRequest) key(kind cloud.Kind) cloud.Key {
	return cloud.Key{Project: r.project, Zone: r.zone, Kind: kind, Name: r.name}
}

// read decodes the request's body.
func (r *computeRequest) read(into proto.Message) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return computeInvalid("The body did not arrive: %v", err)
	}
	if err := protojson.Unmarshal(body, into); err != nil {
		return computeInvalid("Invalid JSON payload received: %v", err)
	}
	return nil
}

func (s *compute) handler(call computeCall) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, httpRequest *http.Request) {
		r := &computeRequest{
			Request: httpRequest, call: call, zone: httpRequest.PathValue("zone"),
			region: httpRequest.PathValue("region"), name: httpRequest.PathValue("name"),
		}
		r.project, _, _ = strings.Cut(httpRequest.PathValue("project"), ":") // ":" begins a verb
		answer, err := s.serve(r)
		if err != nil {
			writeComputeError(w, computeErrorOf(err, r))
			return
		}
		writeCompute(w, answer)
	})
}

// serve carries a request out as far as the weather lets it.
func (s *compute) serve(r *computeRequest) (any, error) {
	admitted := cloud.Call{
		API: "compute.googleapis.com", Title: "Compute Engine API", Method: r.call.method, Permission: r.call.permission,
		Project: r.project, Zone: r.zone, Resource: r.resource(), Creates: r.call.creates,
	}
	if r.call.api != "" {
		admitted.API, admitted.Title = r.call.api, r.call.api
	}
	lost, err := s.cloud.Admit(r.Context(), admitted)
	if err != nil {
		return nil, err
	}
	answer, err := s.once(r)
	if lost {
		return nil, cloud.Lost()
	}
	return answer, err
}

// once carries a request out unless one of the same ID has been.
func (s *compute) once(r *computeRequest) (any, error) {
	if r.zone != "" && !s.cloud.HasZone(r.zone) {
		return nil, computeInvalid("Invalid value for field 'zone': '%s'. Unknown zone.", r.zone)
	}
	id := r.URL.Query().Get("requestId")
	if id == "" || r.Method == http.MethodGet {
		return r.call.do(r)
	}
	key := r.Method + " " + r.URL.Path + " " + id
	s.mu.Lock()
	known := s.asked.find(key)
	s.mu.Unlock()
	if op, ok := s.cloud.Operation(known); ok {
		return s.operation(op), nil
	}
	answer, err := r.call.do(r)
	if op, ok := answer.(*computepb.Operation); ok && err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked.remember(key, op.GetName(), s.cloud.Clock().Now())
	}
	return answer, err
}

// requestLog remembers which operation came of a request ID.
type requestLog struct {
	operations map[string]string
	order      []loggedRequest
}

type loggedRequest struct {
	key string
	at  time.Time
}

// requestMemory is how long a request ID is remembered.
const requestMemory = time.Hour

func newRequestLog() requestLog { return requestLog{operations: map[string]string{}} }

func (l *requestLog) find(key string) string { return l.operations[key] }

func (l *requestLog) remember(key, operation string, now time.Time) {
	for len(l.order) > 0 && now.Sub(l.order[0].at) > requestMemory {
		delete(l.operations, l.order[0].key)
		l.order = l.order[1:]
	}
	l.operations[key] = operation
	l.order = append(l.order, loggedRequest{key, now})
}

// newID is a number that nothing else has. The lock is held.
func (s *compute) newID() uint64 {
	s.ids++
	return s.ids
}

// writeCompute answers with a message of the API, or with what encodes as JSON.
func writeCompute(w http.ResponseWriter, answer any) {
	var body []byte
	var err error
	if message, ok := answer.(proto.Message); ok {
		body, err = protojson.Marshal(message)
	} else {
		body, err = json.Marshal(answer)
	}
	if err != nil {
		writeComputeError(w, &computeError{status: http.StatusInternalServerError, reason: "internalError", message: err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // nobody is there if it fails
}

// computeTime is how the service writes a time.
func computeTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// lastPart is a resource's name, of its link or of itself.
func lastPart(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

func pattern(method, scope, rest string) string {
	return fmt.Sprintf("%s /compute/v1/projects/{project}/%s/%s", method, scope, rest)
}
