package cluster

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/schema"
)

func group(name string, requests ...*clusterapi.JobRequest) *clusterapi.LaunchGroupRequest {
	return &clusterapi.LaunchGroupRequest{Requests: requests, Group: &clusterapi.JobGroup{Name: name, Namespace: "rl"}}
}

func TestLaunchGroup(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	request := group("pool", command("server-0"), command("server-1"))
	request.RequestId = "r1"
	answer, err := r.client.LaunchGroup(r.user(), request)
	if err != nil || len(answer.GetJobIds()) != 2 {
		t.Fatalf("LaunchGroup = %v, %v", answer, err)
	}
	for i, id := range answer.GetJobIds() {
		j := r.running(id)
		if want := "job_group.rl/pool.job.server-" + string(rune('0'+i)); j.Spec.Addr.String() != want {
			t.Errorf("address %s, want %s", j.Spec.Addr, want)
		}
	}
	again, err := r.client.LaunchGroup(r.user(), request)
	if err != nil || !slices.Equal(again.GetJobIds(), answer.GetJobIds()) {
		t.Errorf("again = %v, %v, want %v", again, err, answer)
	}
	request.RequestId = "r2"
	if _, err = r.client.LaunchGroup(r.user(), request); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another request: %v", err)
	}
	if _, err = r.client.LaunchGroup(r.user(), group("pool", command("server-9"))); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another job of a group that lives: %v", err)
	}
	for _, one := range request.GetRequests() {
		one.NameClash = clusterapi.NameClash_NAME_CLASH_KEEP
	}
	if kept, err := r.client.LaunchGroup(r.user(), request); err != nil || !slices.Equal(kept.GetJobIds(), answer.GetJobIds()) {
		t.Errorf("keep = %v, %v", kept, err)
	}
	for _, one := range request.GetRequests() {
		one.NameClash = clusterapi.NameClash_NAME_CLASH_RECREATE
	}
	made, err := r.client.LaunchGroup(r.user(), request)
	if err != nil || slices.Contains(answer.GetJobIds(), made.GetJobIds()[0]) {
		t.Fatalf("recreate = %v, %v", made, err)
	}
	info, err := r.client.Poll(r.user(), &clusterapi.PollRequest{JobId: made.GetJobIds()[1]})
	if err != nil || info.GetGroup() != "pool" || info.GetName() != "server-1" {
		t.Errorf("Poll = %v, %v", info, err)
	}
}

// TestGroupsAreInOneRegion unless they ask for something else.
func TestGroupsAreInOneRegion(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	for name, c := range map[string]struct {
		asked *bool
		want  bool
	}{"absent": {nil, true}, "asked": {new(true), true}, "declined": {new(false), false}} {
		request := group(name, command("server"))
		request.Group.SameRegion = c.asked
		answer, err := r.client.LaunchGroup(r.user(), request)
		if err != nil {
			t.Fatal(err)
		}
		addr := r.running(answer.GetJobIds()[0]).Spec.Addr.GroupAddress()
		if got := r.View().Doc.Resources[addr].Group; got == nil || got.SameRegion != c.want {
			t.Errorf("%s: got %+v, want same_region %v", name, got, c.want)
		}
	}
}

// TestSemantics06And11: a group that can never fit is refused at once, and one
// with a mistake leaves nothing behind.
func TestSemantics06And11(t *testing.T) {
	stack := accesstest.LocalStack()
	stack.Reservations = []schema.Reservation{{
		Addr: schema.Address{Kind: schema.KindReservation, Name: "pool"}, Provider: schema.ProviderLocal,
		Min: schema.Capacity{TPU: "v5litepod-4"}, Max: schema.Capacity{TPU: "v5litepod-4", Slices: 3},
	}}
	two := func(name string) *clusterapi.JobRequest {
		r := command(name)
		r.Resources = &clusterapi.Resources{Slices: 2}
		return r
	}
	six := func(name string) *clusterapi.JobRequest {
		r := command(name)
		r.Resources = &clusterapi.Resources{Slices: 6}
		return r
	}
	tests := []struct {
		name    string
		request *clusterapi.LaunchGroupRequest
		pool    string
		code    codes.Code
		want    string
		fields  []string
	}{
		{"limits", group("g", six("a"), six("b")), "", codes.FailedPrecondition, "12 slices are needed at once, and provider local has 10", nil},
		{"reservation", group("g", two("a"), two("b")), "pool", codes.FailedPrecondition, "need 4 slices of reservation.pool, which has 3", nil},
		{"a mistake in each", group("g", command("a b"), command("c"), command("")), "", codes.InvalidArgument, "cannot name a job", []string{"requests[0].name", "requests[2].name"}},
		{"twice", group("g", command("a"), command("a")), "", codes.InvalidArgument, "requests[0] is called a already", []string{"requests[1].name"}},
		{"none", group("g"), "", codes.InvalidArgument, "at least one", []string{"requests"}},
		{"no group", &clusterapi.LaunchGroupRequest{Requests: []*clusterapi.JobRequest{command("a")}}, "", codes.InvalidArgument, "cannot name a group", []string{"group.name"}},
		{"no such reservation", group("g", command("a")), "poool", codes.NotFound, `Did you mean "pool"?`, []string{"reservation_id"}},
	}
	r := newRig(t, stack)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.ReservationId = tt.pool
			_, err := r.client.LaunchGroup(r.user(), tt.request)
			if status.Code(err) != tt.code || !strings.Contains(status.Convert(err).Message(), tt.want) {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.want)
			}
			if got := violations(err); !slices.Equal(got, tt.fields) {
				t.Errorf("fields %q, want %q", got, tt.fields)
			}
		})
	}
	doc := r.View().Doc
	if len(doc.Jobs) > 0 || len(doc.Resources) != 1 { // the reservation
		t.Errorf("left behind: %d jobs, %d resources", len(doc.Jobs), len(doc.Resources))
	}
}
