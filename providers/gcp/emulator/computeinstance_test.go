package emulator_test

import (
	"strings"
	"testing"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

func TestInstanceLives(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	name := w.insert(spotVM("vm"))
	w.wantStatus("vm", "PROVISIONING")
	if got := operationFailure(w.zoneOperation(name)); got != "open" {
		t.Errorf("operation: got %s, want open", got)
	}
	w.clock.Advance(vmUp)
	w.wantStatus("vm", "RUNNING")
	if got := operationFailure(w.zoneOperation(name)); got != "done" {
		t.Errorf("operation: got %s, want done", got)
	}
	vm, err := w.instance("vm")
	if err != nil || vm.GetLabels()["fray-slice"] != "vm" || vm.GetNetworkInterfaces()[0].GetNetworkIP() == "" ||
		!strings.HasSuffix(vm.GetMachineType(), "/projects/"+project+"/zones/"+zone+"/machineTypes/ct5lp-hightpu-4t") ||
		!vm.GetScheduling().GetPreemptible() || vm.GetId() == 0 {
		t.Errorf("instance: got %v, %v", vm, err)
	}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error {
			_, err := w.instances.Stop(t.Context(), &computepb.StopInstanceRequest{Project: project, Zone: zone, Instance: "vm"})
			return err
		}, "TERMINATED"},
		{func() error {
			_, err := w.instances.Start(t.Context(), &computepb.StartInstanceRequest{Project: project, Zone: zone, Instance: "vm"})
			return err
		}, "RUNNING"},
		{func() error {
			_, err := w.instances.Reset(t.Context(), &computepb.ResetInstanceRequest{Project: project, Zone: zone, Instance: "vm"})
			return err
		}, "RUNNING"},
		{func() error {
			_, err := w.instances.Delete(t.Context(), &computepb.DeleteInstanceRequest{Project: project, Zone: zone, Instance: "vm"})
			return err
		}, "gone"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(vmUp)
		w.wantStatus("vm", step.want)
	}
	w.wantNothing()
}

// An operation's error lives in error.errors[].code; 409 and 404 are the call's.
func TestInstanceOperationErrors(t *testing.T) {
	capacity := func(n int) []cloud.Zone {
		return []cloud.Zone{{Name: zone, Capacity: map[string]int{"v5litepod": n}}}
	}
	other := func(vm *computepb.Instance, change func(*computepb.Instance)) *computepb.Instance {
		change(vm)
		return vm
	}
	for _, test := range []struct {
		name     string
		scenario cloud.Scenario
		vm       *computepb.Instance
		want     string
	}{
		{"stockout", cloud.Scenario{Zones: capacity(3)}, spotVM("vm"), "503 ZONE_RESOURCE_POOL_EXHAUSTED"},
		{"quota", cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Limit: 3}}}, spotVM("vm"), "403 QUOTA_EXCEEDED"},
		{"internal", cloud.Scenario{Conditions: cloud.Conditions{LateFailures: cloud.Of(1)}}, spotVM("vm"), "500 INTERNAL_ERROR"},
		{
			"preempted during create", cloud.Scenario{Conditions: cloud.Conditions{CreatePreempted: cloud.Of(1)}}, spotVM("vm"),
			"400 UNSUPPORTED_OPERATION",
		},
		{
			"no reserved capacity",
			cloud.Scenario{Zones: []cloud.Zone{{Name: zone, Reserved: map[string]int{"v5litepod": 3}}}},
			other(spotVM("vm"), func(vm *computepb.Instance) {
				vm.Scheduling.ProvisioningModel = new("RESERVATION_BOUND")
				vm.Scheduling.InstanceTerminationAction = new("DELETE")
			}), "400 RESERVATION_CAPACITY_EXCEEDED",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newComputeWorld(t, test.scenario)
			op := w.insert(test.vm)
			w.clock.Advance(vmUp)
			if got := operationFailure(w.zoneOperation(op)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestStockoutWithDetails(t *testing.T) {
	const odd = "us-west4-bb" // the form goes by the zone
	w := newComputeWorld(t, cloud.Scenario{Zones: []cloud.Zone{{Name: odd, Capacity: map[string]int{"v5litepod": 1}}}})
	op, err := w.instances.Insert(t.Context(), &computepb.InsertInstanceRequest{Project: project, Zone: odd, InstanceResource: spotVM("vm")})
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(vmUp)
	if err := op.Poll(t.Context()); err == nil {
		t.Error("poll: got no error of a failed operation")
	}
	failures := op.Proto().GetError().GetErrors()
	if len(failures) != 1 || failures[0].GetCode() != "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" ||
		failures[0].GetErrorDetails()[0].GetErrorInfo().GetMetadatas()["zone"] != odd {
		t.Errorf("got %v, want the details of %s", failures, odd)
	}
}

func TestComputeRejections(t *testing.T) {
	none := cloud.Scenario{}
	quota := cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Limit: 0}}}
	for _, test := range []struct {
		name     string
		scenario cloud.Scenario
		change   func(*computepb.InsertInstanceRequest)
		want     string
	}{
		{"exists", none, nil, "409 alreadyExists: projects/" + project + "/zones/" + zone + "/instances/vm"},
		{"bad name", none, func(r *computepb.InsertInstanceRequest) { r.InstanceResource.Name = new("V_m") }, "400 invalid: resource.name"},
		{"no such machine type", none, func(r *computepb.InsertInstanceRequest) {
			r.InstanceResource.MachineType = new("x9-standard-4")
		}, "400 invalid: Machine type with name 'x9-standard-4'"},
		{"not offered there", none, func(r *computepb.InsertInstanceRequest) {
			r.InstanceResource.MachineType = new("ct4p-hightpu-4t")
		}, "400 invalid: does not exist in zone"},
		{"no such zone", none, func(r *computepb.InsertInstanceRequest) { r.Zone = "us-nowhere1-a" }, "400 invalid: Unknown zone"},
		{"no such network", cloud.Scenario{Networks: []string{"private"}}, nil, "400 invalid: networkInterfaces[0].network"},
		{"label too long", none, func(r *computepb.InsertInstanceRequest) {
			r.InstanceResource.Labels = map[string]string{"fray-slice": strings.Repeat("x", 64)}
		}, "400 invalid: violates format constraints"},
		{"flex-start without an end", none, func(r *computepb.InsertInstanceRequest) {
			r.InstanceResource.Scheduling = &computepb.Scheduling{ProvisioningModel: new("FLEX_START")}
		}, "400 invalid: maxRunDuration"},
		{"spot that restarts", none, func(r *computepb.InsertInstanceRequest) {
			r.InstanceResource.Scheduling.AutomaticRestart = new(true)
		}, "400 invalid: automaticRestart"},
		{"quota of zero", quota, nil, "403 quotaExceeded: Limit: 0.0 in region us-west4"},
		{
			"no permission", cloud.Scenario{API: cloud.API{Deny: []string{"compute.instances.create"}}}, nil,
			"403 forbidden: Required 'compute.instances.create' permission",
		},
		{"wrong project", cloud.Scenario{Project: "another"}, nil, "403 forbidden: compute.instances.create"},
		{
			"API disabled", cloud.Scenario{API: cloud.API{Disabled: []string{"compute.googleapis.com"}}}, nil,
			"403 accessNotConfigured: Compute Engine API has not been used in project",
		},
		{"no credentials", cloud.Scenario{API: cloud.API{Unauthenticated: true}}, nil, "401 authError"},
		{"unavailable", cloud.Scenario{API: cloud.API{FailureRate: 1}}, nil, "503 backendError"},
		{"too many", cloud.Scenario{CreateLimit: 1}, func(r *computepb.InsertInstanceRequest) {
			r.InstanceResource.Name = new("second")
		}, "403 rateLimitExceeded: Queries per minute"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newComputeWorld(t, test.scenario)
			request := &computepb.InsertInstanceRequest{Project: project, Zone: zone, InstanceResource: spotVM("vm")}
			if test.name == "exists" || test.name == "too many" {
				w.insert(spotVM("vm"))
			}
			if test.change != nil {
				test.change(request)
			}
			_, err := w.instances.Insert(t.Context(), request)
			wantRESTRejection(t, "insert", err, test.want)
		})
	}
}

// Preemption: operations of type compute.instances.preempted; status STOPPING,
// then TERMINATED, or gone.
func TestPreemptedInstances(t *testing.T) {
	for action, after := range map[string]string{"STOP": "TERMINATED", "DELETE": "gone"} {
		t.Run(action, func(t *testing.T) {
			w := newComputeWorld(t, cloud.Scenario{})
			vm := spotVM("vm")
			vm.Scheduling.InstanceTerminationAction = &action
			w.insert(vm)
			w.clock.Advance(vmUp)
			if err := w.emulator.Cloud().Preempt(cloud.Key{Project: project, Zone: zone, Kind: cloud.KindInstance, Name: "vm"}, true); err != nil {
				t.Fatal(err)
			}
			w.wantStatus("vm", "RUNNING")
			w.clock.Advance(cloud.NoticeTime)
			w.wantStatus("vm", "STOPPING")
			w.clock.Advance(vmUp)
			w.wantStatus("vm", after)
			found := collected(t, w.zones.List(t.Context(), &computepb.ListZoneOperationsRequest{
				Project: project, Zone: zone, Filter: new(`operationType="compute.instances.preempted"`),
			}))
			if len(found) != 1 || !strings.HasSuffix(found[0].GetTargetLink(), "/instances/vm") || found[0].GetUser() != "system" {
				t.Errorf("operations: got %v, want one that names the instance", found)
			}
		})
	}
}

// The lost reply of an insert: the same request ID is the same operation.
func TestComputeRequestIDs(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	id := "8f2c9a52-0d4b-4a3e-9a55-0e5f0a6d3b11"
	request := &computepb.InsertInstanceRequest{Project: project, Zone: zone, RequestId: &id, InstanceResource: spotVM("vm")}
	first, err := w.instances.Insert(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.instances.Insert(t.Context(), request)
	if err != nil || first.Name() != second.Name() {
		t.Errorf("the same request: got %v, %v, want operation %s", second, err, first.Name())
	}
	request.RequestId = new("8f2c9a52-0d4b-4a3e-9a55-0e5f0a6d3b12")
	_, err = w.instances.Insert(t.Context(), request)
	wantRESTRejection(t, "another request", err, "409 alreadyExists")
}

func TestLostReplyOfAnInsert(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{API: cloud.API{LostReplies: 1}})
	_, err := w.instances.Insert(t.Context(), &computepb.InsertInstanceRequest{Project: project, Zone: zone, InstanceResource: spotVM("vm")})
	wantRESTRejection(t, "insert", err, "503 backendError")
	if _, ok := w.emulator.Cloud().Group(cloud.Key{Project: project, Zone: zone, Kind: cloud.KindInstance, Name: "vm"}); !ok {
		t.Error("it was not carried out")
	}
}

// Fingerprints: what has changed since it was read is not changed.
func TestInstanceFingerprints(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.insert(spotVM("vm"))
	w.clock.Advance(vmUp)
	for name, set := range map[string]func(*computepb.Instance, string) error{
		"labels": func(vm *computepb.Instance, value string) error {
			_, err := w.instances.SetLabels(t.Context(), &computepb.SetLabelsInstanceRequest{
				Project: project, Zone: zone, Instance: "vm", InstancesSetLabelsRequestResource: &computepb.InstancesSetLabelsRequest{
					LabelFingerprint: vm.LabelFingerprint, Labels: map[string]string{"k": value},
				},
			})
			return err
		},
		"metadata": func(vm *computepb.Instance, value string) error {
			_, err := w.instances.SetMetadata(t.Context(), &computepb.SetMetadataInstanceRequest{
				Project: project, Zone: zone, Instance: "vm", MetadataResource: &computepb.Metadata{
					Fingerprint: vm.GetMetadata().Fingerprint, Items: []*computepb.Items{{Key: new("k"), Value: &value}},
				},
			})
			return err
		},
		"tags": func(vm *computepb.Instance, value string) error {
			_, err := w.instances.SetTags(t.Context(), &computepb.SetTagsInstanceRequest{
				Project: project, Zone: zone, Instance: "vm", TagsResource: &computepb.Tags{
					Fingerprint: vm.GetTags().Fingerprint, Items: []string{value},
				},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := w.instance("vm")
			if err != nil {
				t.Fatal(err)
			}
			if err := set(before, "one"); err != nil {
				t.Fatal(err)
			}
			wantRESTRejection(t, "by what was read before", set(before, "two"), "412 conditionNotMet")
			after, err := w.instance("vm")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{
				"labels": after.GetLabels()["k"], "tags": strings.Join(after.GetTags().GetItems(), " "),
				"metadata": after.GetMetadata().GetItems()[0].GetValue(),
			}[name]
			if got != "one" {
				t.Errorf("got %q, want one", got)
			}
		})
	}
	g, _ := w.emulator.Cloud().Group(cloud.Key{Project: project, Zone: zone, Kind: cloud.KindInstance, Name: "vm"})
	if g.Labels["k"] != "one" || g.Metadata["k"] != "one" {
		t.Errorf("the machine itself: got %v %v, want the new ones", g.Labels, g.Metadata)
	}
}

func TestInstanceExternalAddresses(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	vm := spotVM("vm")
	vm.NetworkInterfaces[0].AccessConfigs = []*computepb.AccessConfig{{Name: new("External NAT")}}
	w.insert(vm)
	w.clock.Advance(vmUp)
	shown, err := w.instance("vm")
	if err != nil || shown.GetNetworkInterfaces()[0].GetAccessConfigs()[0].GetNatIP() == "" {
		t.Errorf("got %v, %v, want an external address", shown.GetNetworkInterfaces(), err)
	}
	request := &computepb.DeleteAccessConfigInstanceRequest{
		Project: project, Zone: zone, Instance: "vm", NetworkInterface: "nic0", AccessConfig: "External NAT",
	}
	if _, err := w.instances.DeleteAccessConfig(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if shown, err = w.instance("vm"); err != nil || len(shown.GetNetworkInterfaces()[0].GetAccessConfigs()) != 0 {
		t.Errorf("got %v, %v, want no external address", shown.GetNetworkInterfaces(), err)
	}
	_, err = w.instances.DeleteAccessConfig(t.Context(), request)
	wantRESTRejection(t, "delete it again", err, "400 invalid")
}

func TestInstanceGuestAttributes(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.insert(spotVM("vm"))
	w.clock.Advance(vmUp)
	ask := &computepb.GetGuestAttributesInstanceRequest{Project: project, Zone: zone, Instance: "vm", QueryPath: new("fray/")}
	_, err := w.instances.GetGuestAttributes(t.Context(), ask)
	wantRESTRejection(t, "before", err, "404 notFound")
	g, _ := w.emulator.Cloud().Group(cloud.Key{Project: project, Zone: zone, Kind: cloud.KindInstance, Name: "vm"})
	if err := w.emulator.Cloud().SetGuestAttribute(g.Hosts[0].ID, cloud.GuestAttributeKey{Namespace: "fray", Key: "boot"}, "ready"); err != nil {
		t.Fatal(err)
	}
	got, err := w.instances.GetGuestAttributes(t.Context(), ask)
	if items := got.GetQueryValue().GetItems(); err != nil || len(items) != 1 || items[0].GetKey() != "boot" || items[0].GetValue() != "ready" {
		t.Errorf("got %v, %v, want boot=ready", got, err)
	}
}

func TestUnknownCallsOfComputeAreNamed(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	_, err := w.instances.Suspend(t.Context(), &computepb.SuspendInstanceRequest{Project: project, Zone: zone, Instance: "vm"})
	wantRESTRejection(t, "suspend", err, "501 notImplemented: /instances/vm/suspend")
}
