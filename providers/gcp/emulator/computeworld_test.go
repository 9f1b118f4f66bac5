package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	computeapi "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// computeWorld is an emulator on a virtual clock, and Google's clients of its
// Compute Engine, which try everything once.
type computeWorld struct {
	*world
	instances *computeapi.InstancesClient
	groups    *computeapi.InstanceGroupManagersClient
	resizes   *computeapi.InstanceGroupManagerResizeRequestsClient
	templates *computeapi.InstanceTemplatesClient
	policies  *computeapi.ResourcePoliciesClient
	zones     *computeapi.ZoneOperationsClient
}

func newComputeWorld(t *testing.T, scenario cloud.Scenario) *computeWorld {
	t.Helper()
	w := &computeWorld{world: newWorld(t, scenario)}
	w.instances = dialed(w, computeapi.NewInstancesRESTClient)
	w.instances.CallOptions = &computeapi.InstancesCallOptions{}
	w.groups = dialed(w, computeapi.NewInstanceGroupManagersRESTClient)
	w.groups.CallOptions = &computeapi.InstanceGroupManagersCallOptions{}
	w.resizes = dialed(w, computeapi.NewInstanceGroupManagerResizeRequestsRESTClient)
	w.templates = dialed(w, computeapi.NewInstanceTemplatesRESTClient)
	w.policies = dialed(w, computeapi.NewResourcePoliciesRESTClient)
	w.zones = dialed(w, computeapi.NewZoneOperationsRESTClient)
	return w
}

// clientOptions lead to the emulator, over connections of this test's own.
func (w *computeWorld) clientOptions() []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint(w.emulator.URL()), option.WithHTTPClient(&http.Client{Transport: &http.Transport{}}),
	}
}

// dial is how Google's libraries make a client.
type dial[C any] func(ctx context.Context, options ...option.ClientOption) (C, error)

func dialed[C interface{ Close() error }](w *computeWorld, dial dial[C]) C {
	w.t.Helper()
	client, err := dial(w.t.Context(), w.clientOptions()...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

// spotVM is a machine that every test can have.
func spotVM(name string) *computepb.Instance {
	return &computepb.Instance{
		Name: &name, MachineType: new("zones/" + zone + "/machineTypes/ct5lp-hightpu-4t"),
		Labels:            map[string]string{"fray-stack": "s", "fray-slice": name},
		Metadata:          &computepb.Metadata{Items: []*computepb.Items{{Key: new("startup-script"), Value: new("true")}}},
		NetworkInterfaces: []*computepb.NetworkInterface{{Network: new("global/networks/default")}},
		Disks:             []*computepb.AttachedDisk{{Boot: new(true)}},
		Scheduling: &computepb.Scheduling{
			ProvisioningModel: new("SPOT"), InstanceTerminationAction: new("STOP"), AutomaticRestart: new(false),
		},
	}
}

// insert asks for a machine and returns its operation's name.
func (w *computeWorld) insert(instance *computepb.Instance) string {
	w.t.Helper()
	op, err := w.instances.Insert(w.t.Context(), &computepb.InsertInstanceRequest{Project: project, Zone: zone, InstanceResource: instance})
	if err != nil {
		w.t.Fatalf("insert %s: %v", instance.GetName(), err)
	}
	return op.Name()
}

func (w *computeWorld) instance(name string) (*computepb.Instance, error) {
	return w.instances.Get(w.t.Context(), &computepb.GetInstanceRequest{Project: project, Zone: zone, Instance: name})
}

// status is what a machine shows, "gone" of none.
func (w *computeWorld) status(name string) string {
	w.t.Helper()
	instance, err := w.instance(name)
	if httpStatus(err) == http.StatusNotFound {
		return "gone"
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return instance.GetStatus()
}

func (w *computeWorld) wantStatus(name, want string) {
	w.t.Helper()
	if got := w.status(name); got != want {
		w.t.Errorf("instance %s: got %s, want %s", name, got, want)
	}
}

// wantNothing checks that nothing is left in the cloud.
func (w *computeWorld) wantNothing() {
	w.t.Helper()
	for _, g := range w.emulator.Cloud().All() {
		w.t.Errorf("left: %s %s is %s", g.Kind, g.Name, g.State)
	}
	for _, c := range w.emulator.Cloud().Capacity() {
		if c.Used > 0 {
			w.t.Errorf("left: %+v", c)
		}
	}
}

// zoneOperation is an operation as it is now.
func (w *computeWorld) zoneOperation(name string) *computepb.Operation {
	w.t.Helper()
	op, err := w.zones.Get(w.t.Context(), &computepb.GetZoneOperationRequest{Project: project, Zone: zone, Operation: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// operationFailure is an operation's error as "HTTP CODE", "open" or "done".
func operationFailure(op *computepb.Operation) string {
	switch {
	case op.GetStatus() != computepb.Operation_DONE:
		return "open"
	case len(op.GetError().GetErrors()) == 0:
		return "done"
	}
	return fmt.Sprintf("%d %s", op.GetHttpErrorStatusCode(), op.GetError().GetErrors()[0].GetCode())
}

// vmUp is long enough for a machine to come up without faults.
const vmUp = time.Minute

func httpStatus(err error) int {
	if answer, ok := errors.AsType[*googleapi.Error](err); ok {
		return answer.Code
	}
	return 0
}

// restRejection is a rejection as "HTTP reason".
func restRejection(err error) string {
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok || len(answer.Errors) == 0 {
		return fmt.Sprint("no rejection: ", err)
	}
	return fmt.Sprintf("%d %s", answer.Code, answer.Errors[0].Reason)
}

func wantRESTRejection(t *testing.T, what string, err error, want string) {
	t.Helper()
	status, words, _ := strings.Cut(want, ": ")
	if got := restRejection(err); got != status {
		t.Errorf("%s: got %s (%v), want %s", what, got, err, status)
	} else if !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %q does not say %q", what, err, words)
	}
}

// pairs is how the libraries list over all scopes.
type pairs[P any] interface{ Next() (P, error) }

func collected[P any](t testing.TB, list pairs[P]) []P {
	t.Helper()
	var all []P
	for {
		one, err := list.Next()
		if errors.Is(err, iterator.Done) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}
