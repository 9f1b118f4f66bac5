package emulator_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

const (
	project = "acme-research"
	zone    = "us-west4-a"
	parent  = "projects/" + project + "/locations/" + zone
	anyZone = "projects/" + project + "/locations/-"
)

// world is an emulator on a virtual clock, and real clients of it.
type world struct {
	t          *testing.T
	emulator   *emulator.Emulator
	clock      *cloud.Virtual
	tpu        tpuapi.TpuClient
	operations longrunningpb.OperationsClient
	locations  location.LocationsClient
}

func newWorld(t *testing.T, scenario cloud.Scenario) *world {
	t.Helper()
	e, clock, connection := serve(t, scenario)
	return &world{
		t: t, emulator: e, clock: clock, tpu: tpuapi.NewTpuClient(connection),
		operations: longrunningpb.NewOperationsClient(connection), locations: location.NewLocationsClient(connection),
	}
}

// serve runs an emulator on a virtual clock and connects to it.
func serve(t testing.TB, scenario cloud.Scenario) (*emulator.Emulator, *cloud.Virtual, *grpc.ClientConn) {
	t.Helper()
	clock := cloud.NewVirtual(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	e := emulator.New(emulator.Config{Cloud: cloud.Config{Scenario: scenario, Clock: clock}})
	if err := e.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	at, err := url.Parse(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return e, clock, connection
}

// spot is a node that every test can have.
func spot() *tpuapi.Node {
	return &tpuapi.Node{
		AcceleratorType: "v5litepod-16", RuntimeVersion: "v2-alpha-tpuv5-lite",
		SchedulingConfig: &tpuapi.SchedulingConfig{Spot: true},
		Labels:           map[string]string{"fray-stack": "s"}, Metadata: map[string]string{"startup-script": "true"},
	}
}

// create asks for a node and returns the open operation.
func (w *world) create(id string, node *tpuapi.Node) *longrunningpb.Operation {
	w.t.Helper()
	op, err := w.tpu.CreateNode(w.t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: id, Node: node})
	if err != nil {
		w.t.Fatalf("create %s: %v", id, err)
	}
	if op.GetDone() {
		w.t.Errorf("create %s: the operation is done at once: %v", id, op)
	}
	return op
}

// made is a node that has become ready.
func (w *world) made(id string, node *tpuapi.Node) *tpuapi.Node {
	w.t.Helper()
	w.create(id, node)
	w.clock.Advance(time.Minute)
	return w.want(id, tpuapi.Node_READY)
}

// want has the node in a state.
func (w *world) want(id string, state tpuapi.Node_State) *tpuapi.Node {
	w.t.Helper()
	node, err := w.tpu.GetNode(w.t.Context(), &tpuapi.GetNodeRequest{Name: parent + "/nodes/" + id})
	if err != nil {
		w.t.Fatalf("get %s: %v", id, err)
	}
	if node.GetState() != state {
		w.t.Fatalf("node %s is %v, want %v", id, node.GetState(), state)
	}
	return node
}

func (w *world) gone(id string) {
	w.t.Helper()
	_, err := w.tpu.GetNode(w.t.Context(), &tpuapi.GetNodeRequest{Name: parent + "/nodes/" + id})
	wantCode(w.t, err, codes.NotFound, "was not found")
}

// poll asks for an operation once.
func (w *world) poll(op *longrunningpb.Operation) *longrunningpb.Operation {
	w.t.Helper()
	now, err := w.operations.GetOperation(w.t.Context(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
	if err != nil {
		w.t.Fatalf("poll: %v", err)
	}
	return now
}

// failed has an operation ended with a code and words.
func (w *world) failed(op *longrunningpb.Operation, code codes.Code, words string) {
	w.t.Helper()
	now := w.poll(op)
	if !now.GetDone() || now.GetError().GetCode() != int32(code) || !strings.Contains(now.GetError().GetMessage(), words) {
		w.t.Errorf("operation is %v, want an error with code %d that says %q", now, code, words)
	}
}

func wantCode(t testing.TB, err error, code codes.Code, words string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(fmt.Sprint(err), words) {
		t.Errorf("got  %v\nwant %v with %q", err, code, words)
	}
}

// nodes lists all nodes, page by page.
func (w *world) nodes(ctx context.Context, in string, size int32) (names []string, pages int, unreachable []string) {
	w.t.Helper()
	token := ""
	for {
		r, err := w.tpu.ListNodes(ctx, &tpuapi.ListNodesRequest{Parent: in, PageSize: size, PageToken: token})
		if err != nil {
			w.t.Fatalf("list nodes: %v", err)
		}
		pages++
		for _, n := range r.GetNodes() {
			names = append(names, n.GetName()[strings.LastIndexByte(n.GetName(), '/')+1:])
		}
		unreachable = r.GetUnreachable()
		if token = r.GetNextPageToken(); token == "" {
			return names, pages, unreachable
		}
	}
}
