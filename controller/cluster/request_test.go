package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/admission"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func cloudStack() schema.Desired {
	tpus, machines := schema.Capacity{TPU: "v5litepod-4", Slices: 2}, schema.Capacity{CPU: 8, Memory: 32 << 30, Slices: 1}
	gpus := schema.Capacity{GPU: schema.GPU{Type: "h100", Count: 8}, Slices: 1}
	return schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "p", Zones: []string{"us-west4-a", "us-central1-a"}}},
		Reservations: []schema.Reservation{
			{Addr: schema.Address{Kind: schema.KindReservation, Name: "machines"}, Provider: schema.ProviderGCP, Min: machines, Max: machines, Zones: []string{"us-west4-a"}},
			{Addr: schema.Address{Kind: schema.KindReservation, Name: "tpus"}, Provider: schema.ProviderGCP, Min: tpus, Max: tpus, Zones: []string{"us-west4-a"}},
			{Addr: schema.Address{Kind: schema.KindReservation, Name: "gpus"}, Provider: schema.ProviderGCP, Min: gpus, Max: gpus, Zones: []string{"us-west4-a"}},
		},
	}
}

// TestChildrenStayInTheRegion: what names no place is where its parent runs.
func TestChildrenStayInTheRegion(t *testing.T) {
	r := newRig(t, cloudStack())
	parent := command("lead")
	parent.Resources = &clusterapi.Resources{Tpu: "v5litepod-4", Zones: []string{"us-central1-a"}}
	id := r.launch(r.user(), parent)
	r.running(id)
	tests := []struct {
		name    string
		asks    *clusterapi.Resources
		regions []string
		code    codes.Code
	}{
		{"tpu", &clusterapi.Resources{Tpu: "v5litepod-8"}, []string{"us-central1"}, codes.OK},
		{"machine", nil, []string{"us-central1"}, codes.OK},
		{"its own region", &clusterapi.Resources{Cpu: 1, Regions: []string{"us-west4"}}, []string{"us-west4"}, codes.OK},
		{"its own zone", &clusterapi.Resources{Cpu: 1, Zones: []string{"us-west4-a"}}, nil, codes.OK},
		{"a reservation", &clusterapi.Resources{ReservationId: "tpus"}, nil, codes.OK},
		{"not there", &clusterapi.Resources{Tpu: "v4-8"}, nil, codes.InvalidArgument},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			child := command(fmt.Sprintf("child-%d", i))
			child.Resources = tt.asks
			answer, err := r.client.Launch(r.as(id), &clusterapi.LaunchRequest{Request: child})
			if status.Code(err) != tt.code {
				t.Fatalf("got %v, want %s", err, tt.code)
			}
			if err != nil {
				return
			}
			j := jobs.NewTable(r.View().Doc).ByID(answer.GetJobId())
			if got := j.Spec.Resources; !slices.Equal(got.Regions, tt.regions) || got.Provider != schema.ProviderGCP {
				t.Errorf("resources %+v, want regions %q", got, tt.regions)
			}
		})
	}
}

// TestGroupReservation: those of a group draw from its reservation that it suits;
// of machines, parts.
func TestGroupReservation(t *testing.T) {
	tests := []struct {
		name, pool string
		asks       *clusterapi.Resources
		want       string
		packed     bool
	}{
		{"the same TPU", "tpus", &clusterapi.Resources{Tpu: "v5e-4"}, "tpus", false},
		{"no shape", "tpus", nil, "tpus", false},
		{"another TPU", "tpus", &clusterapi.Resources{Tpu: "v5e-8"}, "", false},
		{"a machine", "tpus", &clusterapi.Resources{Cpu: 2, Regions: []string{"us-west4"}}, "", false},
		{"its own", "tpus", &clusterapi.Resources{Cpu: 2, ReservationId: "machines"}, "machines", true},
		{"a part of a machine", "machines", &clusterapi.Resources{Cpu: 2, Memory: 1 << 30}, "machines", true},
		{"GPUs", "tpus", &clusterapi.Resources{Gpu: &clusterapi.Gpu{Type: "h100"}}, "", false},
		{"the same GPUs", "gpus", &clusterapi.Resources{Gpu: &clusterapi.Gpu{Type: "NVIDIA-H100-80GB-HBM3", Count: 8}}, "gpus", false},
		{"fewer GPUs", "gpus", &clusterapi.Resources{Gpu: &clusterapi.Gpu{Type: "h100", Count: 4}}, "", false},
		{"a machine without GPUs", "gpus", &clusterapi.Resources{Cpu: 2, Regions: []string{"us-west4"}}, "", false},
		{"GPUs of any type", "gpus", &clusterapi.Resources{Gpu: &clusterapi.Gpu{Count: 8}}, "gpus", false},
		{"a whole machine", "machines", nil, "machines", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := change.Accepted(&state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnop", Revision: 1}, cloudStack())
			request := command("a")
			request.Resources = tt.asks
			o := &admission.Order{Caller: caller.Caller{Kind: caller.User}, Requests: []*clusterapi.JobRequest{request}, Paths: []string{"requests[0]"}, Pool: tt.pool, RequestID: "r",
				Group: &clusterapi.JobGroup{Name: "g", Namespace: "rl", SameZone: true}}
			next, made, err := o.Admit(doc, time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			got := admission.JobOf(next, made.IDs[0]).Spec.Resources
			if got.Reservation != tt.want || got.Packed != tt.packed || got.Packed && (got.CPU != 2 || got.Memory != schema.Bytes(tt.asks.GetMemory())) {
				t.Errorf("resources %+v, want reservation %q, packed %t", got, tt.want, tt.packed)
			}
		})
	}
}

// TestReservationsThatAreOver: nothing draws from what has come to its end.
func TestReservationsThatAreOver(t *testing.T) {
	desired := cloudStack()
	desired.Reservations[1].TTL = schema.Duration(time.Hour)
	doc := change.Accepted(&state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnop", Revision: 1}, desired)
	since := time.Unix(1e9, 0)
	doc.Resources[desired.Reservations[1].Addr] = state.Resource{Since: since, Reservation: &desired.Reservations[1]}
	for after, want := range map[time.Duration]codes.Code{59 * time.Minute: codes.OK, time.Hour: codes.NotFound} {
		request := command("a")
		request.Resources = &clusterapi.Resources{ReservationId: "tpus"}
		o := &admission.Order{Caller: caller.Caller{Kind: caller.User}, Requests: []*clusterapi.JobRequest{request}, Paths: []string{"request"}, RequestID: "r"}
		if _, _, err := o.Admit(doc, since.Add(after)); status.Code(err) != want {
			t.Errorf("after %s: %v, want %s", after, err, want)
		}
	}
}

// BenchmarkLaunch is the change that launches one more job beside 10,000.
func BenchmarkLaunch(b *testing.B) {
	doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: "abcdefghijklmnop", Desired: accesstest.LocalStack(), Jobs: map[schema.Address]*state.Job{}}
	doc.Desired.Providers[0].Slices = 0
	for i := range 10_000 {
		addr := schema.LaunchedAddress(schema.KindJob, "rl", "", fmt.Sprintf("job-%d", i))
		doc.Jobs[addr] = &state.Job{ID: addr.String(), Spec: &schema.Job{Addr: addr, Namespace: "rl"}, Launch: &state.Launch{Name: addr.LaunchedName()}, Status: schema.JobRunning}
	}
	for b.Loop() {
		o := &admission.Order{Caller: caller.Caller{Kind: caller.User}, Requests: []*clusterapi.JobRequest{command("a")}, Paths: []string{"request"}, RequestID: "r"}
		if _, _, err := o.Admit(doc, time.Unix(0, 0)); err != nil {
			b.Fatal(err)
		}
	}
}
