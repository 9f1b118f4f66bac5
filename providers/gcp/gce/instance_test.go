package gce

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/providers/gcp/gce/gcetest"
	"github.com/fray-ml/fray/schema"
)

func TestComputeScheduling(t *testing.T) {
	reservedIn := func(name string) func(*schema.SliceSpec) {
		return func(s *schema.SliceSpec) {
			s.Cloud.Provisioning, s.Cloud.ReservedIn = schema.ProvisioningReserved, name
		}
	}
	for _, test := range []struct {
		name     string
		spec     schema.SliceSpec
		want     string // scheduling
		affinity string
	}{
		{"on demand", gcetest.Spec("one"), `{"provisioningModel":"STANDARD"}`, ""},
		{"on demand with a TPU, which cannot move", gcetest.Spec("one", gcetest.OfTPU("v6e-8", 1)), `{"provisioningModel":"STANDARD","onHostMaintenance":"TERMINATE"}`, ""},
		{"spot, stopped so that it can be seen", gcetest.Spec("one", gcetest.Spot),
			`{"provisioningModel":"SPOT","instanceTerminationAction":"STOP","automaticRestart":false,"onHostMaintenance":"TERMINATE"}`, ""},
		{"spot in a group, deleted", gcetest.Spec("many", gcetest.OfTPU("v6e-16", 4), gcetest.Spot),
			`{"provisioningModel":"SPOT","instanceTerminationAction":"DELETE","automaticRestart":false,"onHostMaintenance":"TERMINATE"}`, ""},
		{"reserved", gcetest.Spec("one", gcetest.OfTPU("v6e-8", 1), reservedIn("ours")),
			`{"provisioningModel":"RESERVATION_BOUND","instanceTerminationAction":"DELETE","automaticRestart":false,"onHostMaintenance":"TERMINATE"}`,
			`{"consumeReservationType":"SPECIFIC_RESERVATION","key":"compute.googleapis.com/reservation-name","values":["ours"]}`},
		{"reserved anywhere", gcetest.Spec("one", gcetest.OfTPU("v6e-8", 1), reservedIn("")),
			`{"provisioningModel":"RESERVATION_BOUND","instanceTerminationAction":"DELETE","automaticRestart":false,"onHostMaintenance":"TERMINATE"}`,
			`{"consumeReservationType":"ANY_RESERVATION"}`},
		{"flex-start", gcetest.Spec("one", gcetest.OfTPU("v6e-8", 1), gcetest.FlexStart),
			`{"provisioningModel":"FLEX_START","instanceTerminationAction":"DELETE","automaticRestart":false,"onHostMaintenance":"TERMINATE","maxRunDuration":{"seconds":"3600"}}`,
			`{"consumeReservationType":"NO_RESERVATION"}`},
		{"on demand with GPUs, which cannot move", gcetest.Spec("one", gcetest.OfGPUs("h100", 8)), `{"provisioningModel":"STANDARD","onHostMaintenance":"TERMINATE"}`, ""},
		{"a machine type with GPUs", gcetest.Spec("one", func(s *schema.SliceSpec) { s.MachineType = "g2-standard-4" }), `{"provisioningModel":"STANDARD","onHostMaintenance":"TERMINATE"}`, ""},
		{"spot with GPUs", gcetest.Spec("one", gcetest.OfGPUs("t4", 1), gcetest.Spot),
			`{"provisioningModel":"SPOT","instanceTerminationAction":"STOP","automaticRestart":false,"onHostMaintenance":"TERMINATE"}`, ""},
		{"reserved machines that are bound to their reservation", gcetest.Spec("one", gcetest.OfGPUs("b200", 8), reservedIn("ours")),
			`{"provisioningModel":"RESERVATION_BOUND","instanceTerminationAction":"DELETE","automaticRestart":false,"onHostMaintenance":"TERMINATE"}`,
			`{"consumeReservationType":"SPECIFIC_RESERVATION","key":"compute.googleapis.com/reservation-name","values":["ours"]}`},
		{"reserved machines that are standard ones", gcetest.Spec("one", gcetest.OfGPUs("l4", 1), reservedIn("ours")),
			`{"provisioningModel":"STANDARD","onHostMaintenance":"TERMINATE"}`,
			`{"consumeReservationType":"SPECIFIC_RESERVATION","key":"compute.googleapis.com/reservation-name","values":["ours"]}`},
		{"flex-start with GPUs", gcetest.Spec("one", gcetest.OfGPUs("h100", 1), gcetest.FlexStart),
			`{"provisioningModel":"FLEX_START","instanceTerminationAction":"DELETE","automaticRestart":false,"onHostMaintenance":"TERMINATE","maxRunDuration":{"seconds":"3600"}}`,
			`{"consumeReservationType":"NO_RESERVATION"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			scheduling, err := machineScheduling(test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, test.want), encoded(t, scheduling)); diff != "" {
				t.Errorf("scheduling (-want +got):\n%s", diff)
			}
			if test.affinity == "" {
				test.affinity = "{}"
			}
			if diff := cmp.Diff(decoded(t, test.affinity), encoded(t, reservationAffinity(test.spec))); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
		})
	}
}

// encoded is a part of a request as the service reads it.
func encoded(t *testing.T, part any) map[string]any {
	t.Helper()
	text, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(text))
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
