package gcp_test

import (
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// machine makes an instance and waits until it runs.
func (m *manual) machine(t *testing.T, name string) {
	t.Helper()
	text := func(s string) *string { return &s }
	yes := true
	_, err := m.instances.Insert(t.Context(), &computepb.InsertInstanceRequest{
		Project: checkedProject, Zone: importZone, InstanceResource: &computepb.Instance{
			Name: &name, MachineType: text("zones/" + importZone + "/machineTypes/n2-standard-8"), Labels: map[string]string{"team": "vision"},
			Metadata:          &computepb.Metadata{Items: []*computepb.Items{{Key: text("note"), Value: text("keep")}}},
			NetworkInterfaces: []*computepb.NetworkInterface{{Network: text("global/networks/default")}},
			Disks: []*computepb.AttachedDisk{{Boot: &yes, InitializeParams: &computepb.AttachedDiskInitializeParams{
				SourceImage: text("projects/debian-cloud/global/images/family/debian-12"),
			}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "instance "+name, func() bool {
		i, err := m.instances.Get(t.Context(), &computepb.GetInstanceRequest{Project: checkedProject, Zone: importZone, Instance: name})
		return err == nil && i.GetStatus() == "RUNNING"
	})
}

func TestImportInstance(t *testing.T) {
	const id = "projects/acme-research/zones/us-west4-a/instances/old"
	declared := func(s *schema.SliceSpec) {
		s.TPU, s.MachineType, s.Preemptible, s.Hosts = "", "n2-standard-8", false, 1
	}
	t.Run("as declared", func(t *testing.T) {
		m := newManual(t)
		m.machine(t, "old")
		got, err := m.provider.Import(t.Context(), id, wanted(declared))
		if err != nil {
			t.Fatal(err)
		}
		want := wanted(declared)
		want.Name, want.Zone, want.Cloud.Engine, want.Cloud.Live.InternalIPs = "old", importZone, schema.EngineGCE, true
		if got != want || m.listed(t).Spec != want {
			t.Errorf("imported %+v\nlisted %+v\nwant %+v", got, m.listed(t).Spec, want)
		}
		i, err := m.instances.Get(t.Context(), &computepb.GetInstanceRequest{Project: checkedProject, Zone: importZone, Instance: "old"})
		if err != nil {
			t.Fatal(err)
		}
		items := map[string]string{}
		for _, item := range i.GetMetadata().GetItems() {
			items[item.GetKey()] = item.GetValue()
		}
		if items["note"] != "keep" || items["startup-script"] != "#! fray" || i.GetLabels()["team"] != "vision" {
			t.Errorf("metadata %v, labels %v", items, i.GetLabels())
		}
		if again, err := m.provider.Import(t.Context(), id, wanted(declared)); err != nil || again != want {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
	for _, test := range []struct {
		name, id string
		spec     func(*schema.SliceSpec)
		want     string
	}{
		{"another type", id, func(s *schema.SliceSpec) { declared(s); s.MachineType = "n2-standard-4" }, "its machine type is n2-standard-8, and n2-standard-4 is declared"},
		{"not spot", id, func(s *schema.SliceSpec) { declared(s); s.Preemptible = true }, "its provisioning is not preemptible, and preemptible is declared"},
		{"of several hosts", id, nil, "v5litepod-16 has 4 hosts, and an instance is one"},
		{"not there", "us-west4-a/gone", declared, "there is no instance gone in us-west4-a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newManual(t)
			m.machine(t, "old")
			_, err := m.provider.Import(t.Context(), test.id, wanted(test.spec))
			if rejected, ok := errors.AsType[*providers.Error](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v (%v), want %q", err, rejected, test.want)
			}
		})
	}
}
