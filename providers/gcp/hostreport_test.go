package gcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// TestHostReports: what machines write into guest attributes is read from each kind of slice.
func TestHostReports(t *testing.T) {
	for _, test := range []struct {
		name string
		spec schema.SliceSpec
		kind cloud.Kind
		want []string // host and status, the name of a machine of a group as *
	}{
		{"TPU node", onTPU(computeSpec(2, "v5p-16")), cloud.KindNode, []string{"host 1: failed: no service account"}},
		{"one machine", computeSpec(1, ""), cloud.KindInstance, []string{"host 0: failed: no service account"}},
		{"group", computeSpec(2, "v5p-16"), cloud.KindGroup, []string{"machine *: failed: no service account"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newComputeWorld(t, cloud.Scenario{})
			w.create(test.spec)
			missing := []int{0, 1}[:test.spec.Hosts]
			reports, err := w.provider.HostReports(t.Context(), test.spec, missing)
			if err != nil || len(reports) != 0 {
				t.Fatalf("before anything is reported: got %v, %v", reports, err)
			}
			w.awaits("it", schema.SliceReady, "")
			group, ok := w.emulator.Cloud().Group(w.key(test.kind))
			if !ok {
				t.Fatal("the slice is not there")
			}
			last := group.Hosts[test.spec.Hosts-1]
			w.does(w.emulator.Cloud().SetGuestAttribute(last.ID, cloud.GuestAttributeKey{Namespace: "fray", Key: "status"}, "failed: no service account"))
			w.does(w.emulator.Cloud().SetGuestAttribute(last.ID, cloud.GuestAttributeKey{Namespace: "other", Key: "status"}, "x"))
			reports, err = w.provider.HostReports(t.Context(), test.spec, missing)
			var got []string
			for _, r := range reports {
				who := fmt.Sprintf("host %d", r.Host)
				if strings.HasPrefix(r.Machine, "it") {
					who = "machine *"
				}
				got = append(got, fmt.Sprintf("%s: %s", who, r.Status))
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func onTPU(spec schema.SliceSpec) schema.SliceSpec {
	spec.Cloud.Engine = schema.EngineTPU
	return spec
}

// TestHostReportsMayBeDenied: who may not read guest attributes gets an error of that kind.
func TestHostReportsMayBeDenied(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{API: cloud.API{Deny: []string{"compute.instances.getGuestAttributes"}}})
	spec := computeSpec(1, "")
	w.create(spec)
	w.awaits("it", schema.SliceReady, "")
	if _, err := w.provider.HostReports(t.Context(), spec, []int{0}); providers.KindOf(err) != schema.ErrorPermission {
		t.Errorf("got %v, want an error of kind permission", err)
	}
}
