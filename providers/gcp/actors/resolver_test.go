package actors_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/providers/gcp/actors"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

const (
	project = "acme-research"
	west    = "us-west4-a"
	central = "us-central1-a"
)

// world is an emulator on a virtual clock, and Google's clients of it.
type world struct {
	t         *testing.T
	emulator  *emulator.Emulator
	clock     *cloud.Virtual
	instances *compute.InstancesClient
	tpu       tpuapi.TpuClient
}

func newWorld(t *testing.T, scenario cloud.Scenario) *world {
	t.Helper()
	w := &world{t: t, clock: cloud.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))}
	w.emulator = emulator.New(emulator.Config{Cloud: cloud.Config{Scenario: scenario, Clock: w.clock}})
	w.does(w.emulator.Start(t.Context(), "127.0.0.1:0"))
	var err error
	w.instances, err = compute.NewInstancesRESTClient(t.Context(), option.WithEndpoint(w.emulator.URL()), option.WithoutAuthentication())
	w.does(err)
	at, err := url.Parse(w.emulator.URL())
	w.does(err)
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.does(err)
	w.tpu = tpuapi.NewTpuClient(connection)
	t.Cleanup(func() {
		if err := errors.Join(w.instances.Close(), connection.Close(), w.emulator.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) does(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// resolver is one that may list as often as it likes, and need not.
func (w *world) resolver(config actors.Config) *actors.Resolver {
	w.t.Helper()
	config.Project, config.Endpoint = project, w.emulator.URL()
	if config.Fresh == 0 {
		config.Fresh = time.Hour
	}
	if config.Pace == 0 {
		config.Pace = 1
	}
	r, err := actors.NewResolver(w.t.Context(), config)
	w.does(err)
	w.t.Cleanup(func() {
		if err := r.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return r
}

// instance makes a machine that runs, after those that were made before.
func (w *world) instance(zone, name string, labels map[string]string) {
	w.t.Helper()
	_, err := w.instances.Insert(w.t.Context(), &computepb.InsertInstanceRequest{Project: project, Zone: zone, InstanceResource: &computepb.Instance{
		Name: &name, MachineType: new("zones/" + zone + "/machineTypes/n2-standard-4"), Labels: labels,
		NetworkInterfaces: []*computepb.NetworkInterface{{Network: new("global/networks/default")}},
		Disks:             []*computepb.AttachedDisk{{Boot: new(true)}},
	}})
	w.does(err)
	w.clock.Advance(time.Minute)
}

// node makes a TPU node of four hosts that is ready.
func (w *world) node(zone, name string, labels map[string]string) {
	w.t.Helper()
	_, err := w.tpu.CreateNode(w.t.Context(), &tpuapi.CreateNodeRequest{
		Parent: "projects/" + project + "/locations/" + zone, NodeId: name,
		Node: &tpuapi.Node{AcceleratorType: "v5litepod-16", RuntimeVersion: "v2-alpha-tpuv5-lite", Labels: labels},
	})
	w.does(err)
	w.clock.Advance(time.Minute)
}

// address is what the emulator says is that of a machine's first host.
func (w *world) address(name string) string {
	w.t.Helper()
	for _, g := range w.emulator.World().Groups {
		if g.Name == name {
			return g.Hosts[0].Address
		}
	}
	w.t.Fatalf("there is no %s", name)
	return ""
}

// finds wants a name at machines, "NAME:PORT" each.
func (w *world) finds(r *actors.Resolver, name string, want ...string) {
	w.t.Helper()
	found, err := r.Resolve(w.t.Context(), name)
	if err != nil && len(want) > 0 {
		w.t.Errorf("%s: got %v, want %v", name, err, want)
		return
	}
	var got, at []string
	for _, e := range found {
		got = append(got, e.Address)
	}
	for _, each := range want {
		machine, port, _ := strings.Cut(each, ":")
		at = append(at, w.address(machine)+":"+port)
	}
	if !slices.Equal(got, at) {
		w.t.Errorf("%s: got %v, want %v (%v)", name, got, at, want)
	}
}

// missing wants an error of a code for a name, with a text in it.
func (w *world) missing(r *actors.Resolver, name string, code rpcerror.Code, text string) {
	w.t.Helper()
	found, err := r.Resolve(w.t.Context(), name)
	if rpcerror.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		w.t.Errorf("%s: got %v, %v, want an error %s that says %q", name, found, err, code, text)
	}
}

func labelled(port string, more ...string) map[string]string {
	labels := map[string]string{"fray-actor-counter": port}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func TestResolver(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.node(west, "slice", labelled("9000", "fray-actor-curriculum", "9001"))
	w.instance(west, "vm-b", labelled("8000"))
	w.instance(central, "vm-a", labelled("8001", "fray-namespace", "default"))
	w.instance(west, "other", labelled("8002", "fray-namespace", "rl", "fray-actor-weights", "8003"))
	w.instance(west, "typo", map[string]string{"fray-actor-broken": "http"})
	everywhere, rl := w.resolver(actors.Config{}), w.resolver(actors.Config{Namespace: "rl"})
	w.finds(everywhere, "counter", "slice:9000", "vm-b:8000", "vm-a:8001")
	w.finds(everywhere, "curriculum", "slice:9001")
	w.finds(w.resolver(actors.Config{Zones: []string{central}}), "counter", "vm-a:8001")
	w.finds(rl, "counter", "other:8002")
	w.missing(everywhere, "weights", rpcerror.CodeUnknownActor, "fray-actor-weights and fray-namespace = default")
	w.missing(everywhere, "countr", rpcerror.CodeUnknownActor, "did you mean counter?")
	w.missing(everywhere, "broken", rpcerror.CodeUnknownActor, `fray-actor-broken of typo in us-west4-a is "http"`)
	for _, name := range []string{"", "Counter", "a.b", "a/b", strings.Repeat("a", 53)} {
		w.missing(everywhere, name, rpcerror.CodeMalformed, "1 to 52 characters: lower case letters")
	}
	listed, err := rl.List(t.Context(), "w")
	w.does(err)
	if len(listed) != 1 || listed[0].Name != "weights" || listed[0].Namespace != "rl" || listed[0].Member != west+"/other" {
		t.Errorf("list: got %+v, want weights of other alone", listed)
	}
	if _, err := actors.NewResolver(t.Context(), actors.Config{Project: project, Namespace: "My Team", Endpoint: w.emulator.URL()}); err == nil {
		t.Error("a namespace that no label can have is taken")
	}
}

// What was found stays so for a while, unless a call failed.
func TestResolverRemembersUntilACallFails(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	w.instance(west, "vm", labelled("8000"))
	r := w.resolver(actors.Config{})
	w.finds(r, "counter", "vm:8000")
	var told atomic.Value
	defer r.Watch(func(name string) { told.Store(name) })()
	w.instance(west, "new", labelled("8001"))
	w.finds(r, "counter", "vm:8000")
	_, err := w.instances.Delete(t.Context(), &computepb.DeleteInstanceRequest{Project: project, Zone: west, Instance: "vm"})
	w.does(err)
	w.clock.Advance(time.Minute)
	r.Forget("counter")
	w.finds(r, "counter", "new:8001")
	if told.Load() != "counter" {
		t.Errorf("who watches was told of %v, want counter", told.Load())
	}
	slow := w.resolver(actors.Config{Pace: time.Hour})
	w.finds(slow, "counter", "new:8001")
	w.instance(west, "third", labelled("8002"))
	slow.Forget("counter")
	w.finds(slow, "counter", "new:8001") // lists have a pace
}

// A zone that is left out of a list has not lost its machines.
func TestResolverOfPartialLists(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Zones: []cloud.Zone{{Name: west}, {Name: central}}})
	w.instance(west, "vm", labelled("8000"))
	r, late := w.resolver(actors.Config{}), w.resolver(actors.Config{})
	w.finds(r, "counter", "vm:8000")
	w.does(w.emulator.Cloud().Outage(west, time.Hour))
	r.Forget("counter")
	w.finds(r, "counter", "vm:8000")
	w.missing(r, "weights", rpcerror.CodeUnavailable, west)
	w.missing(late, "counter", rpcerror.CodeUnavailable, west)
	if _, err := late.List(t.Context(), ""); rpcerror.CodeOf(err) != rpcerror.CodeUnavailable {
		t.Errorf("list: got %v, want it unavailable", err)
	}
	elsewhere := w.resolver(actors.Config{Zones: []string{central}})
	w.missing(elsewhere, "counter", rpcerror.CodeUnknownActor, "no actor")
	w.clock.Advance(2 * time.Hour)
	w.finds(late, "counter", "vm:8000")
}

// What credentials do not allow is not tried again; what the service cannot do now is.
func TestResolverOfFailures(t *testing.T) {
	w := newWorld(t, cloud.Scenario{API: cloud.API{Unauthenticated: true}})
	w.missing(w.resolver(actors.Config{}), "counter", rpcerror.CodeDenied, "credentials")
	gone := newWorld(t, cloud.Scenario{})
	r, never := gone.resolver(actors.Config{}), gone.resolver(actors.Config{})
	gone.instance(west, "vm", labelled("8000"))
	gone.finds(r, "counter", "vm:8000")
	gone.does(gone.emulator.Close())
	r.Forget("counter")
	gone.finds(r, "counter", "vm:8000")
	gone.missing(never, "counter", rpcerror.CodeUnavailable, "Google Cloud does not list it")
}
