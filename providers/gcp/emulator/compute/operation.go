package compute

import (
	"strings"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// preemptedType is the type of the operation by which the service preempts.
const preemptedType = "compute.instances.preempted"

// operations serves the operations of the model that are this API's. It keeps why
// some that the model ended well have failed.
type operations struct {
	cloud *cloud.Cloud
	lists *lists

	mu       sync.Mutex
	failures failureLog
}

// record makes an operation of this API's own that ends at once. Its verb holds
// what the model does not know: the collection of its target.
func (s *operations) record(r *request) *computeapi.Operation {
	key := r.key(cloud.KindGroup)
	key.Zone = strings.TrimPrefix(strings.TrimPrefix(r.scope(), "zones/"), "regions/")
	return s.show(s.cloud.Record(key, r.endpoint.method, 0, nil))
}

// maxFailures is how many operations that failed before they began are remembered.
const maxFailures = 4096

// failureLog remembers why operations of the model's that ended well have failed.
type failureLog struct {
	reasons map[string]*cloud.Error
	order   []string
}

func (l *failureLog) remember(name string, err *cloud.Error) {
	if len(l.order) == maxFailures {
		delete(l.reasons, l.order[0])
		l.order = l.order[1:]
	}
	l.reasons[name] = err
	l.order = append(l.order, name)
}

// rejected is an operation that has failed before it began.
func (s *operations) rejected(r *request, err *cloud.Error) *computeapi.Operation {
	op := s.cloud.Record(r.key(cloud.KindInstance), r.endpoint.method, 0, nil)
	s.mu.Lock()
	s.failures.remember(op.Name, err)
	s.mu.Unlock()
	return s.show(op)
}

// isCompute reports whether an operation is one of this API's.
func isCompute(op cloud.Operation) bool {
	return op.Kind == cloud.KindInstance || op.Kind == cloud.KindGroup
}

// scope is the zone or region of an operation.
func (s *operations) scope(op cloud.Operation) string {
	switch {
	case op.Zone == "global":
		return "global"
	case s.cloud.HasZone(op.Zone):
		return "zones/" + op.Zone
	}
	return "regions/" + op.Zone
}

// operationType is what was done, and to a resource of which collection.
func operationType(op cloud.Operation) (verb, collection string) {
	collection = "instances"
	if op.Kind == cloud.KindGroup {
		collection = "instanceGroupManagers"
	}
	if strings.HasPrefix(op.Verb, "compute.") {
		return op.Verb, "instances"
	}
	if stated, verb, ok := strings.Cut(op.Verb, "."); ok {
		return verb, stated
	}
	switch {
	case op.Verb == "create" && op.Kind == cloud.KindGroup:
		return "bulkInsert", collection // of the group's machines
	case op.Verb == "create":
		return "insert", collection
	case op.Verb == "restart":
		return "reset", collection
	}
	return op.Verb, collection
}

// show is an operation as the API shows it.
func (s *operations) show(op cloud.Operation) *computeapi.Operation {
	verb, collection := operationType(op)
	scope := s.scope(op)
	root := "projects/" + op.Project + "/" + scope
	target := root + "/" + collection + "/" + op.Target
	view := &computeapi.Operation{
		Kind: "compute#operation", Name: op.Name, ID: operationID(op.Name), OperationType: verb,
		Status: computeapi.OperationRunning, Progress: int32(op.Progress),
		TargetLink: linkRoot + target, SelfLink: linkRoot + root + "/operations/" + op.Name,
		InsertTime: timestamp(op.Created), StartTime: timestamp(op.Created),
		User: "emulated@example.com",
	}
	switch {
	case strings.HasPrefix(scope, "zones/"):
		view.Zone = linkRoot + "projects/" + op.Project + "/" + scope
	case strings.HasPrefix(scope, "regions/"):
		view.Region = linkRoot + "projects/" + op.Project + "/" + scope
	}
	if verb == preemptedType {
		view.User, view.StatusMessage = "system", "Instance was preempted."
	}
	s.mu.Lock()
	failed := s.failures.reasons[op.Name]
	s.mu.Unlock()
	if op.Err != nil {
		failed = op.Err
	}
	if op.Done() {
		view.Status, view.Progress = computeapi.OperationDone, int32(100)
		view.EndTime = timestamp(op.Ended)
	}
	if op.Done() && failed != nil {
		f := failureOf(failed, target)
		view.Error, view.HTTPErrorMessage, view.HTTPErrorStatusCode = f.errorList(), f.phrase, int32(f.status)
	}
	return view
}

// operationID is a number made of the name.
func operationID(name string) uint64 { return fingerprintNumber(name) }

func (s *operations) endpoints() map[string]endpoint {
	found := map[string]endpoint{
		"GET /compute/v1/projects/{project}/aggregated/operations": {
			method: "operations.aggregatedList", permission: "compute.globalOperations.list", do: func(r *request) (any, error) {
				return s.lists.aggregated(r, "operations", s.list(r))
			},
		},
	}
	for prefix, scope := range map[string]string{"zone": "zones/{zone}", "region": "regions/{region}", "global": "global"} {
		permission := "compute." + prefix + "Operations."
		get := endpoint{method: "operations.get", permission: permission + "get", do: s.get}
		found[pattern("GET", scope, "operations/{name}")] = get
		found[pattern("POST", scope, "operations/{name}/wait")] = get // which may return before it is done
		found[pattern("GET", scope, "operations")] = endpoint{
			method: "operations.list", permission: permission + "list", do: func(r *request) (any, error) {
				return s.lists.listed(r, "compute#operationList", s.list(r))
			},
		}
	}
	return found
}

// list are the operations of the request's scope, or of all if it has none.
func (s *operations) list(r *request) []listItem {
	var found []listItem
	for _, op := range s.cloud.Operations(r.project, "") {
		scope := s.scope(op)
		if isCompute(op) && (r.endpoint.method == "operations.aggregatedList" || scope == r.scope()) {
			found = append(found, listItem{scope: scope, name: op.Name, message: s.show(op)})
		}
	}
	return found
}

func (s *operations) get(r *request) (any, error) {
	op, ok := s.cloud.Operation(r.name)
	if !ok || !isCompute(op) || s.scope(op) != r.scope() || op.Project != r.project {
		return nil, missing(r.resource())
	}
	return s.show(op), nil
}
