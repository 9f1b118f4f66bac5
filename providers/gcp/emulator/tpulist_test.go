package emulator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

func TestListNodesPages(t *testing.T) {
	w := newWorld(t, cloud.Scenario{PageSize: 4})
	var want []string
	for i := range 10 {
		name := fmt.Sprintf("n%02d", i)
		w.create(name, spot())
		want = append(want, name)
	}
	tests := []struct {
		name      string
		in        string
		size      int32
		wantPages int
	}{
		{"the service's size", parent, 0, 3},
		{"smaller pages", parent, 3, 4},
		{"not larger ones", parent, 100, 3},
		{"over all zones", anyZone, 0, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			names, pages, _ := w.nodes(t.Context(), test.in, test.size)
			if !slices.Equal(names, want) || pages != test.wantPages {
				t.Errorf("got %v on %d pages, want %v on %d", names, pages, want, test.wantPages)
			}
		})
	}
	other, _, _ := w.nodes(t.Context(), "projects/"+project+"/locations/us-central1-a", 0)
	if len(other) > 0 {
		t.Errorf("another zone lists %v, want none", other)
	}
	_, err := w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: parent, PageToken: "made up"})
	wantCode(t, err, codes.InvalidArgument, "page token")
	_, err = w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: parent, PageSize: -1})
	wantCode(t, err, codes.InvalidArgument, "page_size")
}

// TestPagesWhileNodesGo has nothing twice and nothing left out that was there all
// the time.
func TestPagesWhileNodesGo(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	for i := range 6 {
		w.made(fmt.Sprintf("n%d", i), spot())
	}
	first, err := w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: parent, PageSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"n0", "n2"} { // the last one of the page too
		if _, err := w.tpu.DeleteNode(t.Context(), &tpuapi.DeleteNodeRequest{Name: parent + "/nodes/" + gone}); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(time.Minute)
	second, err := w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: parent, PageSize: 3, PageToken: first.GetNextPageToken()})
	if err != nil {
		t.Fatal(err)
	}
	if got := second.GetNodes(); len(got) != 3 || got[0].GetName() != parent+"/nodes/n3" {
		t.Errorf("the second page is %v, want n3, n4 and n5", got)
	}
}

func TestUnreachableZone(t *testing.T) {
	w := newWorld(t, cloud.Scenario{PageSize: 1})
	w.made("a", spot())
	w.made("b", spot())
	if err := w.emulator.Cloud().Outage("us-central1-a", 0); err != nil {
		t.Fatal(err)
	}
	names, _, out := w.nodes(t.Context(), anyZone, 0)
	if want := []string{"projects/" + project + "/locations/us-central1-a"}; !slices.Equal(out, want) || len(names) != 2 {
		t.Errorf("unreachable is %v with nodes %v, want %v and both nodes", out, names, want)
	}
	if err := w.emulator.Cloud().Outage(zone, time.Hour); err != nil {
		t.Fatal(err)
	}
	names, _, out = w.nodes(t.Context(), anyZone, 0)
	if len(names) != 0 || !slices.Contains(out, parent) {
		t.Errorf("unreachable is %v with nodes %v, want %s among them and no nodes", out, names, parent)
	}
	_, err := w.tpu.ListNodes(t.Context(), &tpuapi.ListNodesRequest{Parent: parent})
	wantCode(t, err, codes.Unavailable, "unavailable")
	w.clock.Advance(time.Hour)
	if names, _, _ = w.nodes(t.Context(), parent, 0); len(names) != 2 {
		t.Errorf("after the outage the zone has %v, want both nodes", names)
	}
}

// TestUnreachableStaysSoOverPages has all pages of one list leave out the same.
func TestUnreachableStaysSoOverPages(t *testing.T) {
	w := newWorld(t, cloud.Scenario{API: cloud.API{UnreachableRate: 1}, PageSize: 1})
	w.made("a", spot())
	w.made("b", spot())
	for range 40 {
		names, _, out := w.nodes(t.Context(), anyZone, 0)
		if len(out) != 1 {
			t.Fatalf("unreachable is %v, want one zone", out)
		}
		if want := 2 * (1 - len(intersect(out, []string{parent}))); len(names) != want {
			t.Fatalf("without %v the list has %v, want %d", out, names, want)
		}
	}
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

func TestCatalog(t *testing.T) {
	w := newWorld(t, cloud.Scenario{Runtimes: []string{"v9-test"}})
	types, err := w.tpu.ListAcceleratorTypes(t.Context(), &tpuapi.ListAcceleratorTypesRequest{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range types.GetAcceleratorTypes() {
		names = append(names, a.GetType())
	}
	slices.Sort(names)
	want := []string{"v5litepod-1", "v5litepod-128", "v5litepod-16", "v5litepod-256", "v5litepod-32", "v5litepod-4", "v5litepod-64", "v5litepod-8"}
	if !slices.Equal(names, want) {
		t.Errorf("%s offers %v, want %v", zone, names, want)
	}
	one, err := w.tpu.GetAcceleratorType(t.Context(), &tpuapi.GetAcceleratorTypeRequest{Name: parent + "/acceleratorTypes/v5litepod-16"})
	if err != nil || one.GetAcceleratorConfigs()[0].GetTopology() != "4x4" {
		t.Errorf("v5litepod-16 is %v (%v), want topology 4x4", one, err)
	}
	_, err = w.tpu.GetAcceleratorType(t.Context(), &tpuapi.GetAcceleratorTypeRequest{Name: parent + "/acceleratorTypes/v6e-16"})
	wantCode(t, err, codes.NotFound, "was not found")
	for _, version := range []string{"v2-alpha-tpuv5-lite", "v9-test"} {
		if _, err := w.tpu.GetRuntimeVersion(t.Context(), &tpuapi.GetRuntimeVersionRequest{Name: parent + "/runtimeVersions/" + version}); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	versions, err := w.tpu.ListRuntimeVersions(t.Context(), &tpuapi.ListRuntimeVersionsRequest{Parent: parent})
	if err != nil || len(versions.GetRuntimeVersions()) < 5 {
		t.Errorf("runtime versions are %v (%v)", versions, err)
	}
	zones, err := w.locations.ListLocations(t.Context(), &location.ListLocationsRequest{Name: "projects/" + project})
	if err != nil || !slices.ContainsFunc(zones.GetLocations(), func(l *location.Location) bool { return l.GetLocationId() == zone }) {
		t.Errorf("the locations are %v (%v), want %s among them", zones, err, zone)
	}
	_, err = w.locations.GetLocation(t.Context(), &location.GetLocationRequest{Name: "projects/" + project + "/locations/mars-north1-a"})
	wantCode(t, err, codes.NotFound, "mars-north1-a")
}

func TestOperations(t *testing.T) {
	w := newWorld(t, cloud.Scenario{})
	a, b := w.create("a", spot()), w.create("b", spot())
	all, err := w.operations.ListOperations(t.Context(), &longrunningpb.ListOperationsRequest{Name: parent, PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.GetOperations()) != 1 || all.GetOperations()[0].GetName() != a.GetName() || all.GetNextPageToken() == "" {
		t.Errorf("the first page is %v, want the operation of a and a token", all)
	}
	if _, err := w.operations.CancelOperation(t.Context(), &longrunningpb.CancelOperationRequest{Name: b.GetName()}); err != nil {
		t.Fatal(err)
	}
	w.failed(b, codes.Canceled, "cancelled")
	w.gone("b")
	if _, err := w.operations.DeleteOperation(t.Context(), &longrunningpb.DeleteOperationRequest{Name: a.GetName()}); err != nil {
		t.Fatal(err)
	}
	_, err = w.operations.GetOperation(t.Context(), &longrunningpb.GetOperationRequest{Name: a.GetName()})
	wantCode(t, err, codes.NotFound, "was not found")
	w.clock.Advance(time.Minute)
	w.want("a", tpuapi.Node_READY) // forgetting an operation undoes nothing
}
