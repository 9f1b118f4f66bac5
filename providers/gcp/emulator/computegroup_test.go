package emulator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

const region = "us-west4"

func groupKey() cloud.Key {
	return cloud.Key{Project: project, Zone: zone, Kind: cloud.KindGroup, Name: "slice"}
}

// template makes the instance template of a slice.
func (w *computeWorld) template(name string, change func(*computepb.Instance)) {
	w.t.Helper()
	vm := spotVM(name)
	vm.Scheduling.InstanceTerminationAction = new("DELETE")
	if change != nil {
		change(vm)
	}
	_, err := w.templates.Insert(w.t.Context(), &computepb.InsertInstanceTemplateRequest{
		Project: project, InstanceTemplateResource: &computepb.InstanceTemplate{
			Name: &name, Properties: &computepb.InstanceProperties{
				MachineType: new("ct5lp-hightpu-4t"), Labels: vm.Labels, Metadata: vm.Metadata,
				NetworkInterfaces: vm.NetworkInterfaces, Disks: vm.Disks, Scheduling: vm.Scheduling,
			},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *computeWorld) policy(name, topology string) {
	w.t.Helper()
	_, err := w.policies.Insert(w.t.Context(), &computepb.InsertResourcePolicyRequest{
		Project: project, Region: region, ResourcePolicyResource: &computepb.ResourcePolicy{
			Name: &name, WorkloadPolicy: &computepb.ResourcePolicyWorkloadPolicy{
				Type: new("HIGH_THROUGHPUT"), AcceleratorTopology: &topology,
			},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// sliceGroup is a managed group of so many machines with four chips each.
func sliceGroup(size int32) *computepb.InstanceGroupManager {
	return &computepb.InstanceGroupManager{
		Name: new("slice"), BaseInstanceName: new("slice"), TargetSize: &size,
		InstanceTemplate: new("projects/" + project + "/global/instanceTemplates/slice"),
		TargetSizePolicy: &computepb.InstanceGroupManagerTargetSizePolicy{Mode: new("BULK")},
		ResourcePolicies: &computepb.InstanceGroupManagerResourcePolicies{
			WorkloadPolicy: new("projects/" + project + "/regions/" + region + "/resourcePolicies/slice"),
		},
	}
}

func (w *computeWorld) insertGroup(size int32) {
	w.t.Helper()
	if err := w.tryGroup(sliceGroup(size)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *computeWorld) tryGroup(group *computepb.InstanceGroupManager) error {
	_, err := w.groups.Insert(w.t.Context(), &computepb.InsertInstanceGroupManagerRequest{
		Project: project, Zone: zone, InstanceGroupManagerResource: group,
	})
	return err
}

// slice makes what a spot slice of four hosts is made of.
func (w *computeWorld) slice() {
	w.t.Helper()
	w.template("slice", nil)
	w.policy("slice", "4x4")
	w.insertGroup(4)
}

func (w *computeWorld) group() *computepb.InstanceGroupManager {
	w.t.Helper()
	group, err := w.groups.Get(w.t.Context(), &computepb.GetInstanceGroupManagerRequest{
		Project: project, Zone: zone, InstanceGroupManager: "slice",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return group
}

func (w *computeWorld) managed() []*computepb.ManagedInstance {
	w.t.Helper()
	return collected(w.t, w.groups.ListManagedInstances(w.t.Context(), &computepb.ListManagedInstancesInstanceGroupManagersRequest{
		Project: project, Zone: zone, InstanceGroupManager: "slice",
	}))
}

// members are the statuses of the machines that carry the slice's label.
func (w *computeWorld) members() string {
	w.t.Helper()
	var all []string
	for _, vm := range collected(w.t, w.instances.List(w.t.Context(), &computepb.ListInstancesRequest{
		Project: project, Zone: zone, Filter: new("labels.fray-slice=slice"),
	})) {
		all = append(all, vm.GetStatus())
	}
	return strings.Join(all, " ")
}

// wantGroup checks a group's size, what goes on in it, and whether it is stable.
func (w *computeWorld) wantGroup(want string) {
	w.t.Helper()
	group := w.group()
	actions := group.GetCurrentActions()
	got := fmt.Sprintf("size %d creating %d deleting %d none %d stable %v", group.GetTargetSize(), actions.GetCreating(),
		actions.GetDeleting(), actions.GetNone(), group.GetStatus().GetIsStable())
	if got != want {
		w.t.Errorf("group: got %q, want %q", got, want)
	}
}

func (w *computeWorld) deleteGroup() {
	w.t.Helper()
	if _, err := w.groups.Delete(w.t.Context(), &computepb.DeleteInstanceGroupManagerRequest{
		Project: project, Zone: zone, InstanceGroupManager: "slice",
	}); err != nil {
		w.t.Fatal(err)
	}
}

// A multi-host slice is a managed instance group with a workload policy.
func TestGroupLives(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.slice()
	w.wantGroup("size 4 creating 4 deleting 0 none 0 stable false")
	for _, m := range w.managed() {
		if m.GetCurrentAction() != "CREATING" || m.GetInstanceStatus() != "" {
			t.Errorf("managed: got %v, want one to be made", m)
		}
	}
	names := fmt.Sprint(namesOf(w.managed()))
	w.clock.Advance(vmUp)
	w.wantGroup("size 4 creating 0 deleting 0 none 4 stable true")
	if got := w.members(); got != "RUNNING RUNNING RUNNING RUNNING" {
		t.Errorf("members: got %q, want four that run", got)
	}
	if got := fmt.Sprint(namesOf(w.managed())); got != names || len(w.managed()) != 4 {
		t.Errorf("managed: got %s, want those that were announced, %s", got, names)
	}
	_, err := w.templates.Delete(t.Context(), &computepb.DeleteInstanceTemplateRequest{Project: project, InstanceTemplate: "slice"})
	wantRESTRejection(t, "delete the template", err, "400 resourceInUseByAnotherResource")
	w.deleteGroup()
	w.wantGroup("size 4 creating 0 deleting 4 none 0 stable false")
	w.clock.Advance(vmUp)
	_, err = w.groups.Get(t.Context(), &computepb.GetInstanceGroupManagerRequest{Project: project, Zone: zone, InstanceGroupManager: "slice"})
	wantRESTRejection(t, "get the group", err, "404 notFound")
	if _, err = w.templates.Delete(t.Context(), &computepb.DeleteInstanceTemplateRequest{Project: project, InstanceTemplate: "slice"}); err != nil {
		t.Error(err)
	}
	if _, err := w.policies.Delete(t.Context(), &computepb.DeleteResourcePolicyRequest{Project: project, Region: region, ResourcePolicy: "slice"}); err != nil {
		t.Error(err)
	}
	w.wantNothing()
}

func namesOf(managed []*computepb.ManagedInstance) []string {
	var names []string
	for _, m := range managed {
		names = append(names, m.GetName())
	}
	return names
}

// A group of the size policy BULK gets all of its machines or none, says why not,
// and goes on asking.
func TestGroupWithoutCapacity(t *testing.T) {
	for _, test := range []struct {
		name     string
		scenario cloud.Scenario
		want     string
	}{
		{"stockout", cloud.Scenario{Stockouts: []cloud.Window{{Zone: zone, To: time.Hour}}}, "ZONE_RESOURCE_POOL_EXHAUSTED"},
		{"too little", cloud.Scenario{Zones: []cloud.Zone{{Name: zone, Capacity: map[string]int{"v5litepod": 15}}}}, "ZONE_RESOURCE_POOL_EXHAUSTED"},
		{"quota", cloud.Scenario{Quotas: []cloud.Quota{{Region: region, Type: "v5litepod", Limit: 15}}}, "QUOTA_EXCEEDED"},
		{"internal", cloud.Scenario{Conditions: cloud.Conditions{LateFailures: cloud.Of(1)}}, "INTERNAL_ERROR"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newComputeWorld(t, test.scenario)
			w.slice()
			w.clock.Advance(3 * time.Minute)
			w.wantGroup("size 4 creating 4 deleting 0 none 0 stable false")
			if got := w.members(); got != "" {
				t.Errorf("members: got %q, want none", got)
			}
			bulk := w.group().GetStatus().GetBulkInstanceOperation()
			if got := bulk.GetLastProgressCheck().GetError().GetErrors(); !bulk.GetInProgress() || len(got) != 1 || got[0].GetCode() != test.want {
				t.Errorf("bulk operation: got %v, want %s", bulk, test.want)
			}
			for _, m := range w.managed() {
				if got := m.GetLastAttempt().GetErrors().GetErrors(); len(got) != 1 || got[0].GetCode() != test.want {
					t.Errorf("last attempt: got %v, want %s", got, test.want)
				}
			}
			found := collected(t, w.groups.ListErrors(t.Context(), &computepb.ListErrorsInstanceGroupManagersRequest{
				Project: project, Zone: zone, InstanceGroupManager: "slice",
			}))
			if len(found) < 8 || found[0].GetError().GetCode() != test.want {
				t.Errorf("errors: got %d, the first %v, want those of several attempts of four, %s", len(found), found, test.want)
			}
			if test.name == "stockout" {
				w.clock.Advance(time.Hour)
				w.wantGroup("size 4 creating 0 deleting 0 none 4 stable true")
			}
			w.deleteGroup()
			w.clock.Advance(time.Hour)
			w.wantNothing()
		})
	}
}

// Spot slices and groups are not repaired in place.
func TestPreemptedGroupIsNotRepaired(t *testing.T) {
	for action, want := range map[string]string{"DELETE": "", "STOP": "TERMINATED TERMINATED TERMINATED TERMINATED"} {
		t.Run(action, func(t *testing.T) {
			w := newComputeWorld(t, cloud.Scenario{})
			w.template("slice", func(vm *computepb.Instance) { vm.Scheduling.InstanceTerminationAction = &action })
			w.policy("slice", "4x4")
			w.insertGroup(4)
			w.clock.Advance(vmUp)
			if err := w.emulator.Cloud().Preempt(groupKey(), false); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(time.Hour)
			if got := w.members(); got != want {
				t.Errorf("members: got %q, want %q", got, want)
			}
			if action == "DELETE" {
				w.wantGroup("size 4 creating 0 deleting 0 none 0 stable false")
			}
			if got := len(w.managed()); action == "DELETE" && got != 0 {
				t.Errorf("managed: got %d, want none to be made again", got)
			}
			found := collected(t, w.zones.List(t.Context(), &computepb.ListZoneOperationsRequest{
				Project: project, Zone: zone, Filter: new("operationType=compute.instances.preempted"),
			}))
			if len(found) != 4 {
				t.Errorf("got %d operations, want one for each machine", len(found))
			}
			if got := w.group().GetTargetSize(); got != 4 {
				t.Errorf("target size: got %d, want 4 as before", got)
			}
			w.deleteGroup()
			w.clock.Advance(vmUp)
			w.wantNothing()
		})
	}
}

func TestGroupRejections(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.template("slice", nil)
	w.policy("slice", "4x4")
	for name, test := range map[string]struct {
		change func(*computepb.InstanceGroupManager)
		want   string
	}{
		"no template": {func(g *computepb.InstanceGroupManager) {
			g.InstanceTemplate = new("projects/" + project + "/global/instanceTemplates/none")
		}, "400 invalid: instance template resource cannot be found"},
		"no policy": {func(g *computepb.InstanceGroupManager) {
			g.ResourcePolicies.WorkloadPolicy = new("projects/" + project + "/regions/" + region + "/resourcePolicies/none")
		}, "400 invalid: resource policy resource cannot be found"},
		"another size than the topology": {func(g *computepb.InstanceGroupManager) { g.TargetSize = new(int32(3)) }, "400 invalid: has 16 chips"},
		"bad name":                       {func(g *computepb.InstanceGroupManager) { g.Name = new("a_b") }, "400 invalid: resource.name"},
	} {
		t.Run(name, func(t *testing.T) {
			group := sliceGroup(4)
			test.change(group)
			wantRESTRejection(t, "insert", w.tryGroup(group), test.want)
		})
	}
	w.insertGroup(4)
	wantRESTRejection(t, "insert again", w.tryGroup(sliceGroup(4)), "409 alreadyExists")
}

func TestGroupResizes(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.template("slice", nil)
	w.policy("slice", "4x4")
	w.insertGroup(0)
	resize := func(size int32) error {
		_, err := w.groups.Resize(t.Context(), &computepb.ResizeInstanceGroupManagerRequest{
			Project: project, Zone: zone, InstanceGroupManager: "slice", Size: size,
		})
		w.clock.Advance(vmUp)
		return err
	}
	for _, size := range []int32{4, 0, 4} {
		if err := resize(size); err != nil {
			t.Fatal(err)
		}
		w.wantGroup(fmt.Sprintf("size %d creating 0 deleting 0 none %[1]d stable true", size))
	}
	wantRESTRejection(t, "to what does not fit", resize(3), "400 invalid")
}

// What is changed of one machine of a group is its own, and the group's record
// is under its fingerprint.
func TestGroupUpdates(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.slice()
	w.clock.Advance(vmUp)
	first := w.managed()[0].GetName()
	vm, err := w.instance(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.instances.SetLabels(t.Context(), &computepb.SetLabelsInstanceRequest{
		Project: project, Zone: zone, Instance: first, InstancesSetLabelsRequestResource: &computepb.InstancesSetLabelsRequest{
			LabelFingerprint: vm.LabelFingerprint, Labels: map[string]string{"fray-slice": "slice", "team": "rl"},
		},
	}); err != nil {
		t.Fatal(err)
	}
	labelled := collected(t, w.instances.List(t.Context(), &computepb.ListInstancesRequest{
		Project: project, Zone: zone, Filter: new("labels.team=rl"),
	}))
	if len(labelled) != 1 || labelled[0].GetName() != first {
		t.Errorf("got %d machines with the label, want %s alone", len(labelled), first)
	}
	before := w.group()
	patch := func() error {
		_, err := w.groups.Patch(t.Context(), &computepb.PatchInstanceGroupManagerRequest{
			Project: project, Zone: zone, InstanceGroupManager: "slice", InstanceGroupManagerResource: &computepb.InstanceGroupManager{
				Fingerprint: before.Fingerprint, AllInstancesConfig: &computepb.InstanceGroupManagerAllInstancesConfig{
					Properties: &computepb.InstancePropertiesPatch{Metadata: map[string]string{"fray-spec": "{}"}},
				},
			},
		})
		return err
	}
	if err := patch(); err != nil {
		t.Fatal(err)
	}
	if got := w.group().GetAllInstancesConfig().GetProperties().GetMetadata()["fray-spec"]; got != "{}" {
		t.Errorf("all instances config: got %q, want what was patched", got)
	}
	wantRESTRejection(t, "by the old fingerprint", patch(), "412 conditionNotMet")
	_, err = w.instances.Delete(t.Context(), &computepb.DeleteInstanceRequest{Project: project, Zone: zone, Instance: first})
	wantRESTRejection(t, "delete one machine", err, "400 invalid: managed group")
}

// The group is deleted while the clock and the API work on it: nothing stays.
func TestGroupDeletedAtAnyTime(t *testing.T) {
	for after := time.Duration(0); after < 10*time.Second; after += 250 * time.Millisecond {
		w := newComputeWorld(t, cloud.Scenario{
			Conditions: cloud.Conditions{LateFailures: cloud.Of(0.3), CreatePreempted: cloud.Of(0.3)},
			Seed:       uint64(after),
			Stockouts:  []cloud.Window{{Zone: zone, From: 0, To: time.Second}},
		})
		w.slice()
		w.clock.Advance(after)
		w.deleteGroup()
		w.clock.Advance(time.Hour)
		w.wantNothing()
	}
}
