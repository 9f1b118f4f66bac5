package emulator_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	computeapi "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	resourcemanagerv1 "google.golang.org/api/cloudresourcemanager/v1"
	"google.golang.org/api/cloudresourcemanager/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/serviceusage/v1"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// What a check asks before anything is created: is the API enabled, is it the
// right project, which permission is missing.
func TestProjectChecks(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{Project: project, API: cloud.API{
		Deny: []string{"compute.instances.create"}, Disabled: []string{"tpu.googleapis.com"},
	}})
	endpoint := append(w.clientOptions(), option.WithEndpoint(w.emulator.URL()+"/"))
	usage, err := serviceusage.NewService(t.Context(), endpoint...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := usage.Services.BatchGet("projects/"+project).Names(
		"projects/"+project+"/services/compute.googleapis.com", "projects/"+project+"/services/tpu.googleapis.com",
	).Do()
	if err != nil || len(got.Services) != 2 || got.Services[0].State != "ENABLED" || got.Services[1].State != "DISABLED" {
		t.Errorf("services: got %+v, %v, want enabled and disabled", got, err)
	}
	one, err := usage.Services.Get("projects/" + project + "/services/tpu.googleapis.com").Do()
	if err != nil || one.State != "DISABLED" {
		t.Errorf("service: got %+v, %v, want disabled", one, err)
	}
	manager, err := cloudresourcemanager.NewService(t.Context(), endpoint...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := manager.Projects.Get("projects/" + project).Do()
	if err != nil || found.ProjectId != project || found.State != "ACTIVE" {
		t.Errorf("project: got %+v, %v, want it active", found, err)
	}
	_, err = manager.Projects.Get("projects/another").Do()
	wantRESTRejection(t, "wrong project", err, "403 forbidden: resourcemanager.projects.get")
	granted, err := manager.Projects.TestIamPermissions("projects/"+project, &cloudresourcemanager.TestIamPermissionsRequest{
		Permissions: []string{"compute.instances.create", "compute.instances.get"},
	}).Do()
	if err != nil || !slices.Equal(granted.Permissions, []string{"compute.instances.get"}) {
		t.Errorf("permissions: got %+v, %v, want get alone", granted, err)
	}
	older, err := resourcemanagerv1.NewService(t.Context(), endpoint...)
	if err != nil {
		t.Fatal(err)
	}
	if was, err := older.Projects.Get(project).Do(); err != nil || was.LifecycleState != "ACTIVE" {
		t.Errorf("project by v1: got %+v, %v, want it active", was, err)
	}
	allowed, err := older.Projects.TestIamPermissions(project, &resourcemanagerv1.TestIamPermissionsRequest{
		Permissions: []string{"compute.instances.create", "compute.instances.get"},
	}).Do()
	if err != nil || !slices.Equal(allowed.Permissions, []string{"compute.instances.get"}) {
		t.Errorf("permissions by v1: got %+v, %v, want get alone", allowed, err)
	}
}

func TestDisabledAPISaysWhichOne(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{API: cloud.API{Disabled: []string{"compute.googleapis.com"}}})
	_, err := w.instance("vm")
	answer, ok := errors.AsType[*googleapi.Error](err)
	if !ok || answer.Code != http.StatusForbidden || !strings.Contains(fmt.Sprint(answer.Details...), "SERVICE_DISABLED") ||
		!strings.Contains(fmt.Sprint(answer.Details...), "compute.googleapis.com") {
		t.Errorf("got %v, want 403 with the name of the API in its details", err)
	}
}

// What is offered where, and how much of it is left.
func TestComputeCatalog(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{
		Networks: []string{"default"}, Quotas: []cloud.Quota{{Region: region, Type: "v5litepod", Tier: cloud.TierSpot, Limit: 64}},
	})
	w.insert(spotVM("vm"))
	regions := dialed(w, computeapi.NewRegionsRESTClient)
	got, err := regions.Get(t.Context(), &computepb.GetRegionRequest{Project: project, Region: region})
	if err != nil || len(got.GetQuotas()) != 1 || got.GetQuotas()[0].GetMetric() != "PREEMPTIBLE_TPU_LITE_PODSLICE_V5" ||
		got.GetQuotas()[0].GetLimit() != 64 || got.GetQuotas()[0].GetUsage() != 4 {
		t.Errorf("region: got %v, %v, want a quota of which 4 of 64 are used", got, err)
	}
	_, err = regions.Get(t.Context(), &computepb.GetRegionRequest{Project: project, Region: "nowhere"})
	wantRESTRejection(t, "no such region", err, "404 notFound")
	zones := dialed(w, computeapi.NewZonesRESTClient)
	all := collected(t, zones.List(t.Context(), &computepb.ListZonesRequest{Project: project, Filter: new("name=" + zone)}))
	if len(all) != 1 || all[0].GetStatus() != "UP" || !strings.HasSuffix(all[0].GetRegion(), "/regions/"+region) {
		t.Errorf("zones: got %v, want %s", all, zone)
	}
	_, err = zones.Get(t.Context(), &computepb.GetZoneRequest{Project: project, Zone: "us-nowhere1-a"})
	wantRESTRejection(t, "no such zone", err, "404 notFound")
	types := dialed(w, computeapi.NewMachineTypesRESTClient)
	kind, err := types.Get(t.Context(), &computepb.GetMachineTypeRequest{Project: project, Zone: zone, MachineType: "ct5lp-hightpu-4t"})
	if err != nil || kind.GetAccelerators()[0].GetGuestAcceleratorCount() != 4 {
		t.Errorf("machine type: got %v, %v, want four chips", kind, err)
	}
	_, err = types.Get(t.Context(), &computepb.GetMachineTypeRequest{Project: project, Zone: zone, MachineType: "ct4p-hightpu-4t"})
	wantRESTRejection(t, "a machine type of other zones", err, "404 notFound")
	networks := dialed(w, computeapi.NewNetworksRESTClient)
	if _, err := networks.Get(t.Context(), &computepb.GetNetworkRequest{Project: project, Network: "default"}); err != nil {
		t.Error(err)
	}
	_, err = networks.Get(t.Context(), &computepb.GetNetworkRequest{Project: project, Network: "other"})
	wantRESTRejection(t, "no such network", err, "404 notFound")
	projects := dialed(w, computeapi.NewProjectsRESTClient)
	if found, err := projects.Get(t.Context(), &computepb.GetProjectRequest{Project: project}); err != nil || found.GetName() != project {
		t.Errorf("project: got %v, %v", found, err)
	}
}

// TestComputeNetworks: Google's own client reads what machines of a scenario's networks reach.
func TestComputeNetworks(t *testing.T) {
	scenario, diags := cloud.ParseScenario([]byte(`
network "training" {
  allow                 = ["tcp:22", "icmp"]
  nat                   = ["`+region+`"]
  private_google_access = false
}
network "closed" {
  allow = []
}
`), "scenario.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	w := newComputeWorld(t, scenario)
	rules := collected(t, dialed(w, computeapi.NewFirewallsRESTClient).List(t.Context(), &computepb.ListFirewallsRequest{Project: project}))
	if len(rules) != 2 || rules[0].GetName() != "default-allow-internal" || rules[1].GetName() != "training-allow-internal" ||
		rules[1].GetAllowed()[0].GetPorts()[0] != "22" {
		t.Errorf("firewall rules: got %v, want those of default and training", rules)
	}
	networks := dialed(w, computeapi.NewNetworksRESTClient)
	for network, want := range map[string]int{"training": 1, "closed": 0, "default": 1} {
		got, err := networks.GetEffectiveFirewalls(t.Context(), &computepb.GetEffectiveFirewallsNetworkRequest{Project: project, Network: network})
		if err != nil || len(got.GetFirewalls()) != want {
			t.Errorf("effective firewalls of %s: got %v, %v, want %d", network, got, err, want)
		}
	}
	routers := collected(t, dialed(w, computeapi.NewRoutersRESTClient).List(t.Context(), &computepb.ListRoutersRequest{Project: project, Region: region}))
	if len(routers) != 1 || len(routers[0].GetNats()) != 1 || !strings.HasSuffix(routers[0].GetNetwork(), "/networks/training") {
		t.Errorf("routers: got %v, want one with a NAT of training", routers)
	}
	subnet, err := dialed(w, computeapi.NewSubnetworksRESTClient).Get(t.Context(), &computepb.GetSubnetworkRequest{Project: project, Region: region, Subnetwork: "training"})
	if err != nil || subnet.GetPrivateIpGoogleAccess() {
		t.Errorf("subnetwork: got %v, %v, want one without Private Google Access", subnet, err)
	}
}
