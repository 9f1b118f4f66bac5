package emulator_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// Calls within the process are answered as those over a connection are.
func TestLocalCalls(t *testing.T) {
	e, clock, connection := serve(t, cloud.Scenario{CreateLimit: 2})
	near, far := tpuapi.NewTpuClient(e.RPC()), tpuapi.NewTpuClient(connection)
	create := func(of tpuapi.TpuClient, name string) error {
		_, err := of.CreateNode(t.Context(), &tpuapi.CreateNodeRequest{Parent: parent, NodeId: name, Node: spot()})
		return err
	}
	for _, name := range []string{"a", "b"} {
		if err := create(near, name); err != nil {
			t.Fatal(err)
		}
	}
	wrong := []struct {
		name string
		call func(of tpuapi.TpuClient) error
		want codes.Code
	}{
		{"beyond the limit", func(of tpuapi.TpuClient) error { return create(of, "c") }, codes.ResourceExhausted},
		{"not there", func(of tpuapi.TpuClient) error {
			_, err := of.GetNode(t.Context(), &tpuapi.GetNodeRequest{Name: parent + "/nodes/none"})
			return err
		}, codes.NotFound},
	}
	for _, test := range wrong {
		t.Run(test.name, func(t *testing.T) {
			a, b := test.call(near), test.call(far)
			if status.Code(a) != test.want || a.Error() != b.Error() {
				t.Errorf("got %v, over a connection %v, want %s", a, b, test.want)
			}
		})
	}
	clock.Advance(10 * time.Second)
	list := func(of tpuapi.TpuClient) *tpuapi.ListNodesResponse {
		t.Helper()
		listed, err := of.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: anyZone})
		if err != nil {
			t.Fatal(err)
		}
		return listed
	}
	a, b := list(near), list(far)
	if len(a.GetNodes()) != 2 || !proto.Equal(a, b) {
		t.Errorf("got %v, over a connection %v", a, b)
	}
	if again := list(near); again.GetNodes()[0] != a.GetNodes()[0] {
		t.Error("a node that did not change is another message")
	}
}

// So are those of REST services, whatever host they name.
func TestLocalREST(t *testing.T) {
	e, _, _ := serve(t, cloud.Scenario{})
	get := func(client *http.Client, host, path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	near := &http.Client{Transport: e.REST()}
	for _, path := range []string{"/compute/v1/projects/p/aggregated/instances", "/compute/v1/projects/p/zones/us-west4-a/instances/none"} {
		code, body := get(near, "http://compute.localhost", path)
		wantCode, wantBody := get(http.DefaultClient, e.URL(), path)
		if code != wantCode || body != wantBody {
			t.Errorf("%s: got %d %s, over a connection %d %s", path, code, body, wantCode, wantBody)
		}
	}
}
