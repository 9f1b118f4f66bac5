package emulator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// List filters on the server.
func TestComputeFilters(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	for i := range 5 {
		vm := spotVM(fmt.Sprintf("vm%d", i))
		vm.Labels["odd"] = fmt.Sprint(i % 2)
		w.insert(vm)
	}
	for filter, want := range map[string]string{
		"":                                       "vm0 vm1 vm2 vm3 vm4",
		"labels.odd=1":                           "vm1 vm3",
		`labels.odd = "1"`:                       "vm1 vm3",
		"labels.odd=1 AND labels.fray-slice=vm3": "vm3",
		"(labels.odd=1) (labels.fray-slice=vm1)": "vm1",
		"labels.odd!=1":                          "vm0 vm2 vm4",
		"labels.fray-stack:*":                    "vm0 vm1 vm2 vm3 vm4",
		"labels.other:*":                         "",
		"name=vm2":                               "vm2",
		"name eq vm[12]":                         "vm1 vm2",
		"name ne vm[12]":                         "vm0 vm3 vm4",
		"status=PROVISIONING labels.odd=0":       "vm0 vm2 vm4",
		"scheduling.provisioningModel=STANDARD":  "",
		"labels.odd=2":                           "",
	} {
		for size := uint32(1); size <= 6; size++ {
			var names []string
			for _, vm := range collected(t, w.instances.List(t.Context(), &computepb.ListInstancesRequest{
				Project: project, Zone: zone, Filter: &filter, MaxResults: &size,
			})) {
				names = append(names, vm.GetName())
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("filter %q, %d at a time: got %q, want %q", filter, size, got, want)
			}
		}
	}
	for _, filter := range []string{"labels.odd", "labels.odd=1 OR labels.odd=2", "labels.odd<2", `name="x`} {
		_, err := w.instances.List(t.Context(), &computepb.ListInstancesRequest{Project: project, Zone: zone, Filter: &filter}).Next()
		wantRESTRejection(t, filter, err, "400 invalid")
	}
}

// A scope that cannot be reached is a warning, never a shorter list; without
// partial success it is the error of the whole.
func TestComputePartialLists(t *testing.T) {
	const out = "us-central1-a"
	w := newComputeWorld(t, cloud.Scenario{PageSize: 2})
	for i := range 3 {
		w.insert(spotVM(fmt.Sprintf("vm%d", i)))
	}
	if _, err := w.instances.Insert(t.Context(), &computepb.InsertInstanceRequest{Project: project, Zone: out, InstanceResource: spotVM("far")}); err != nil {
		t.Fatal(err)
	}
	list := func() ([]string, map[string]string) {
		t.Helper()
		var names []string
		warnings := map[string]string{}
		for _, scope := range collected(t, w.instances.AggregatedList(t.Context(), &computepb.AggregatedListInstancesRequest{
			Project: project,
		})) {
			if code := scope.Value.GetWarning().GetCode(); code != "" && code != "NO_RESULTS_ON_PAGE" {
				warnings[scope.Key] = code
			}
			for _, vm := range scope.Value.GetInstances() {
				names = append(names, vm.GetName())
			}
		}
		slices.Sort(names)
		return names, warnings
	}
	if names, warnings := list(); fmt.Sprint(names) != "[far vm0 vm1 vm2]" || len(warnings) != 0 {
		t.Errorf("calm: got %v %v, want all four and no warning", names, warnings)
	}
	if err := w.emulator.Cloud().Outage(out, time.Hour); err != nil {
		t.Fatal(err)
	}
	if names, warnings := list(); fmt.Sprint(names) != "[vm0 vm1 vm2]" || fmt.Sprint(warnings) != "map[zones/"+out+":UNREACHABLE]" {
		t.Errorf("outage: got %v %v, want three and a warning", names, warnings)
	}
	strict, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		w.emulator.URL()+"/compute/v1/projects/"+project+"/aggregated/instances?returnPartialSuccess=false", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(strict)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without partial success: got %s, want 503", answer.Status)
	}
}
