package cluster

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/describe"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func poolConfig(name string, least, most int32) *clusterapi.ReservationConfig {
	return &clusterapi.ReservationConfig{
		Name: name,
		Min:  &clusterapi.Resources{Tpu: "v5litepod-4", Slices: least}, Max: &clusterapi.Resources{Tpu: "v5litepod-4", Slices: most},
		Preemptible: true,
	}
}

// TestFlexibleReservation is use case 5: slices of a launched reservation are
// seen as they come, and jobs of its namespace that ask for that TPU draw from it.
func TestFlexibleReservation(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	lead := command("flex/lead")
	lead.Namespace = "rl"
	leadID := r.launch(r.user(), lead)
	r.running(leadID)
	made, err := r.client.CreateReservation(r.as(leadID), &clusterapi.CreateReservationRequest{Config: poolConfig("", 2, 4), RequestId: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetReservationId()
	again, err := r.client.CreateReservation(r.as(leadID), &clusterapi.CreateReservationRequest{Config: poolConfig("", 2, 4), RequestId: "r1"})
	if err != nil || again.GetReservationId() != id {
		t.Errorf("again = %v, %v, want %s", again, err, id)
	}
	if got := made.GetConfig(); got.GetNamespace() != "rl" || got.GetTtl().AsDuration().Hours() != 1 || got.GetMax().GetSlices() != 4 || got.GetMin().GetTpu() != "v5litepod-4" {
		t.Errorf("config %v", got)
	}
	err = access.Await(r.user(), r.server.State, func(v *access.View) bool {
		addr, err := findReservation(v.Doc, caller.Caller{Kind: caller.User}, id)
		return err == nil && describe.Reservation(v, addr).GetAllocated().GetSlices() >= 2
	})
	if err != nil {
		t.Fatalf("its slices do not come up: %v; %v", err, r.View().Plan.Pending)
	}
	if err := access.Await(r.user(), r.server.State, func(v *access.View) bool {
		addr, err := findReservation(v.Doc, caller.Caller{Kind: caller.User}, id)
		info := describe.Reservation(v, addr)
		for _, of := range []*clusterapi.Resources{info.GetAllocated(), info.GetPending(), info.GetConfig().GetMin(), info.GetConfig().GetMax()} {
			if err != nil || !of.GetPreemptible() {
				t.Errorf("the slices are said to be not preemptible: %v", info)
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	worker := command("worker-0")
	worker.Resources = &clusterapi.Resources{Tpu: "v5e-4"}
	workerID := r.launch(r.as(leadID), worker)
	j := r.running(workerID)
	if j.Spec.Resources.Reservation != id {
		t.Errorf("the worker draws from %q, want %q", j.Spec.Resources.Reservation, id)
	}
	stranger := command("stranger")
	stranger.Resources = &clusterapi.Resources{Tpu: "v5e-4"}
	if j := r.running(r.launch(r.user(), stranger)); j.Spec.Resources.Reservation != "" {
		t.Errorf("a job of another namespace draws from %q", j.Spec.Resources.Reservation)
	}
	other := command("other")
	other.Resources = &clusterapi.Resources{Tpu: "v5e-8"}
	if j := r.running(r.launch(r.as(leadID), other)); j.Spec.Resources.Reservation != "" {
		t.Errorf("another TPU draws from %q", j.Spec.Resources.Reservation)
	}
	info, err := r.client.GetReservation(r.as(leadID), &clusterapi.GetReservationRequest{ReservationId: id})
	if err != nil || len(info.GetJobIds()) != 1 || info.GetJobIds()[0] != workerID || info.GetExpiresAt() == nil {
		t.Errorf("GetReservation = %v, %v", info, err)
	}
	for range 2 { // the second changes nothing
		if _, err := r.client.ReleaseReservation(r.as(leadID), &clusterapi.ReleaseReservationRequest{ReservationId: id}); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	err = access.Await(r.user(), r.server.State, func(v *access.View) bool {
		addr, err := findReservation(v.Doc, caller.Caller{Kind: caller.User}, id)
		return err == nil && describe.Reservation(v, addr).GetReleased()
	})
	if err != nil {
		t.Errorf("it is not released: %v", err)
	}
	late := command("late")
	late.Resources = &clusterapi.Resources{ReservationId: id}
	if _, err := r.client.Launch(r.as(leadID), &clusterapi.LaunchRequest{Request: late}); status.Code(err) != codes.NotFound {
		t.Errorf("drawn from what was released: %v", err)
	}
}

func TestReservationRejections(t *testing.T) {
	stack := accesstest.LocalStack()
	stack.Reservations = []schema.Reservation{{
		Addr: schema.Address{Kind: schema.KindReservation, Name: "declared"}, Provider: schema.ProviderLocal,
		Min: schema.Capacity{TPU: "v5litepod-4", Slices: 1}, Max: schema.Capacity{TPU: "v5litepod-4", Slices: 1},
	}}
	r := newRig(t, stack)
	ids := map[string]string{}
	for _, namespace := range []string{"a", "b"} {
		request := command("lead")
		request.Namespace = namespace
		ids[namespace] = r.launch(r.user(), request)
		r.running(ids[namespace])
	}
	own := poolConfig("own", 1, 1)
	if _, err := r.client.CreateReservation(r.as(ids["a"]), &clusterapi.CreateReservationRequest{Config: own}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		config *clusterapi.ReservationConfig
		code   codes.Code
		field  string
		says   string
	}{
		{"nothing", nil, codes.InvalidArgument, "config", "min"},
		{"the name is taken", own, codes.AlreadyExists, "", "reservation.a/own lives already"},
		{"a wrong name", poolConfig("a b", 1, 1), codes.InvalidArgument, "config.name", "cannot name"},
		{"min above max", poolConfig("x", 3, 2), codes.InvalidArgument, "config.min", "Lower one"},
		{"two shapes", &clusterapi.ReservationConfig{Min: &clusterapi.Resources{Tpu: "v5litepod-4"}, Max: &clusterapi.Resources{Cpu: 1}}, codes.InvalidArgument, "config.max", "shape"},
		{"no such TPU", &clusterapi.ReservationConfig{Max: &clusterapi.Resources{Tpu: "v5-lite"}}, codes.InvalidArgument, "config.max.tpu", "no TPU type"},
		{"more than there is", poolConfig("x", 11, 12), codes.FailedPrecondition, "", "provider local has 10"},
		{"a wrong ttl", &clusterapi.ReservationConfig{Max: &clusterapi.Resources{Cpu: 1}, Ttl: &durationpb.Duration{Seconds: -1, Nanos: 1}}, codes.InvalidArgument, "config.ttl", "range"},
		{"a negative ttl", &clusterapi.ReservationConfig{Max: &clusterapi.Resources{Cpu: 1}, Ttl: &durationpb.Duration{Seconds: -1}}, codes.InvalidArgument, "config.ttl", "zero or more"},
		{"another namespace", &clusterapi.ReservationConfig{Max: &clusterapi.Resources{Cpu: 1}, Namespace: "b"}, codes.PermissionDenied, "", "config.namespace"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.client.CreateReservation(r.as(ids["a"]), &clusterapi.CreateReservationRequest{Config: tt.config})
			if status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.says)
			}
			if got := violations(err); tt.field != "" && (len(got) == 0 || got[0] != tt.field) {
				t.Errorf("fields %q, want %q", got, tt.field)
			}
		})
	}
	for _, tt := range []struct {
		who, asked string
		code       codes.Code
		says       string
	}{
		{"b", "own", codes.NotFound, ""},
		{"b", "a/own", codes.NotFound, ""},
		{"a", "onw", codes.NotFound, ""},
		{"a", "declard", codes.NotFound, `did you mean "declared"?`},
		{"a", "declared", codes.FailedPrecondition, "stack's files"},
		{"a", "", codes.InvalidArgument, "reservation_id"},
		{"a", "own", codes.OK, ""},
	} {
		_, err := r.client.ReleaseReservation(r.as(ids[tt.who]), &clusterapi.ReleaseReservationRequest{ReservationId: tt.asked})
		if status.Code(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s releases %q: %v, want %s with %q", tt.who, tt.asked, err, tt.code, tt.says)
		}
	}
}

// TestReservationGoesWithItsParent: like jobs, unless it is detached.
func TestReservationGoesWithItsParent(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	id := r.launch(r.user(), command("lead"))
	r.running(id)
	kept := poolConfig("kept", 1, 1)
	kept.Detached = true
	for _, config := range []*clusterapi.ReservationConfig{poolConfig("gone", 1, 1), kept} {
		if _, err := r.client.CreateReservation(r.as(id), &clusterapi.CreateReservationRequest{Config: config}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.client.ListReservations(r.as(id), &clusterapi.ListReservationsRequest{})
	if err != nil || len(list.GetReservations()) != 2 {
		t.Errorf("ListReservations = %v, %v", list, err)
	}
	r.End(id, schema.TaskSucceeded)
	r.until(id, "ended", func(j *state.Job) bool { return j.Status.Ended() })
	err = access.Await(r.user(), r.server.State, func(*access.View) bool {
		list, err := r.client.ListReservations(r.user(), &clusterapi.ListReservationsRequest{Namespace: "lead"})
		return err == nil && len(list.GetReservations()) == 1 && list.GetReservations()[0].GetConfig().GetName() == "kept"
	})
	if err != nil {
		t.Errorf("%v; want only the detached one", err)
	}
}
