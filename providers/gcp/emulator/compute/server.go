package compute

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// server admits requests, carries each out once and answers it.
type server struct {
	cloud      *cloud.Cloud
	operations *operations
	mux        *http.ServeMux

	mu    sync.Mutex
	asked requestLog
}

// New makes a handler of the API of Compute Engine, below /compute/, and of the two
// APIs that state what a project may use, below /v1/projects/ and /v3/projects/.
func New(c *cloud.Cloud) http.Handler {
	lists := newLists(c)
	ops := &operations{cloud: c, lists: lists, failures: failureLog{reasons: map[string]*cloud.Error{}}}
	ids := newIDs()
	machines := newInstances(c, ops)
	templates := &templates{cloud: c, operations: ops, ids: ids, all: map[templateKey]any{}}
	groups := &groups{
		cloud: c, operations: ops, ids: ids, templates: templates, instances: machines, managers: map[cloud.Key]*manager{},
	}
	templates.userOf = groups.userOf

	s := &server{cloud: c, operations: ops, mux: http.NewServeMux(), asked: newRequestLog()}
	for _, endpoints := range []map[string]endpoint{
		machines.endpoints(), groups.endpoints(), groups.resizeEndpoints(), templates.endpoints(), ops.endpoints(),
		(&catalogs{cloud: c, lists: lists}).endpoints(), (&projects{cloud: c}).endpoints(),
	} {
		for pattern, e := range endpoints {
			s.mux.Handle(pattern, s.handler(e))
		}
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &apiError{status: http.StatusNotImplemented, reason: "notImplemented",
			message: "the emulator of Compute Engine does not know " + r.Method + " " + r.URL.Path})
	})
	return s.mux
}

func (s *server) handler(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, httpRequest *http.Request) {
		r := &request{
			Request: httpRequest, endpoint: e, zone: httpRequest.PathValue("zone"),
			region: httpRequest.PathValue("region"), name: httpRequest.PathValue("name"),
		}
		r.project, _, _ = strings.Cut(httpRequest.PathValue("project"), ":") // ":" begins a verb
		answer, err := s.serve(r)
		if err != nil {
			writeError(w, errorOf(err, r))
			return
		}
		writeAnswer(w, answer)
	})
}

// serve carries a request out as far as the conditions of the cloud let it.
func (s *server) serve(r *request) (any, error) {
	admitted := cloud.Call{
		API: "compute.googleapis.com", Title: "Compute Engine API", Method: r.endpoint.method, Permission: r.endpoint.permission,
		Project: r.project, Zone: r.zone, Resource: r.resource(), Creates: r.endpoint.creates,
	}
	if r.endpoint.api != "" {
		admitted.API, admitted.Title = r.endpoint.api, r.endpoint.api
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
func (s *server) once(r *request) (any, error) {
	if r.zone != "" && !s.cloud.HasZone(r.zone) {
		return nil, invalid("Invalid value for field 'zone': '%s'. Unknown zone.", r.zone)
	}
	id := r.URL.Query().Get("requestId")
	if id == "" || r.Method == http.MethodGet {
		return r.endpoint.do(r)
	}
	key := r.Method + " " + r.URL.Path + " " + id
	s.mu.Lock()
	known := s.asked.find(key)
	s.mu.Unlock()
	if op, ok := s.cloud.Operation(known); ok {
		return s.operations.show(op), nil
	}
	answer, err := r.endpoint.do(r)
	if op, ok := answer.(*computeapi.Operation); ok && err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked.remember(key, op.Name, s.cloud.Clock().Now())
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

// writeAnswer answers with what encodes as JSON.
func writeAnswer(w http.ResponseWriter, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		writeError(w, &apiError{status: http.StatusInternalServerError, reason: "internalError", message: err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails only without a reader
}
