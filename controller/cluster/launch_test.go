package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func TestLaunch(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	id := r.launch(r.user(), command("train-1.5b"))
	info, err := r.client.Poll(r.user(), &clusterapi.PollRequest{JobId: id}) // at once
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.GetAddress(), "job.train-1-5b/train-1.5b"; got != want {
		t.Errorf("address %s, want %s", got, want)
	}
	r.running(id)
	info, err = r.client.Poll(r.user(), &clusterapi.PollRequest{JobId: "train-1.5b"})
	if err != nil || info.GetJobId() != id || info.GetStatus() != clusterapi.JobStatus_JOB_STATUS_RUNNING || info.GetUser() != "ada" ||
		info.GetNamespace() != "train-1-5b" || len(info.GetTasks()) != 1 || info.GetTasks()[0].GetState() != "running" {
		t.Errorf("Poll = %v, %v", info, err)
	}
}

// TestLaunchedIsSeen: who was answered finds the job, although the loop shows
// what it changed a little later.
func TestLaunchedIsSeen(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	gate := make(chan struct{})
	r.DelayViews(gate)
	before := r.Waits()
	answered := make(chan string, 1)
	go func() {
		answer, err := r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: command("a")})
		if err != nil {
			t.Error(err)
		}
		answered <- answer.GetJobId()
	}()
	r.eventually("Launch waits for a view", func() bool { return r.Waits() >= before+2 || len(answered) > 0 })
	if len(answered) > 0 {
		t.Fatal("answered before it can be seen")
	}
	close(gate)
	if _, err := r.client.Poll(r.user(), &clusterapi.PollRequest{JobId: <-answered}); err != nil {
		t.Error(err)
	}
}

// TestLaunchOverTCP is the one call that is made over a real socket.
func TestLaunchOverTCP(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn := r.serve(l, l.Addr().String())
	answer, err := clusterapi.NewClusterClient(conn).Launch(r.user(), &clusterapi.LaunchRequest{Request: command("a")})
	if err != nil || answer.GetJobId() == "" {
		t.Fatalf("Launch = %v, %v", answer, err)
	}
}

// TestChildrenInherit: namespace, environment, user and band are the parent's
// where a request says nothing; its end is theirs.
func TestChildrenInherit(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	sum := r.upload("the project")
	parent := command("exp/main")
	parent.Namespace, parent.User, parent.Band = "rl", "bob", clusterapi.Band_BAND_BATCH
	parent.Environment = &clusterapi.Environment{Bundle: sum, Uv: &clusterapi.UV{Extras: []string{"tpu"}}, EnvVars: map[string]string{"A": "a", "B": "b", "FRAY_ACTOR_NAMES": `["x"]`}}
	parentID := r.launch(r.user(), parent)
	r.running(parentID)

	child := command("child")
	first := r.running(r.launch(r.as(parentID), child))
	if got := first.Spec; got.Namespace != "rl" || got.User != "bob" || got.Band != schema.BandBatch ||
		got.Environment.Bundle != sum || got.Environment.UV.Extras[0] != "tpu" || len(got.Environment.Env) != 2 || got.Environment.Env["A"] != schema.Plain("a") {
		t.Errorf("a child that says nothing: %+v", got)
	}
	if l := first.Launch; l.Parent != parentID || l.ParentAttempt != 1 || l.Name != "child" {
		t.Errorf("launch %+v", l)
	}
	over := command("over")
	over.Environment = &clusterapi.Environment{Inherit: true, EnvVars: map[string]string{"B": "own"}}
	if got := r.running(r.launch(r.as(parentID), over)).Spec.Environment; got.Env["A"] != schema.Plain("a") || got.Env["B"] != schema.Plain("own") || got.UV == nil {
		t.Errorf("over the parent's: %+v", got)
	}
	apart := command("apart")
	apart.Environment, apart.Detached = &clusterapi.Environment{EnvVars: map[string]string{"C": "c"}}, true
	apartID := r.launch(r.as(parentID), apart)
	if got := r.running(apartID).Spec.Environment; got.Bundle != sum || got.UV != nil || len(got.Env) != 1 {
		t.Errorf("without inherit: %+v", got)
	}
	list, err := r.client.ListJobs(r.as(parentID), &clusterapi.ListJobsRequest{ParentJobId: parentID})
	if err != nil || len(list.GetJobs()) != 3 || list.GetJobs()[0].GetName() != "apart" {
		t.Errorf("ListJobs = %v, %v", list, err)
	}

	r.End(parentID, schema.TaskSucceeded)
	r.until(first.ID, "stopped with its parent", func(j *state.Job) bool { return j.Status == schema.JobStopped })
	if got := r.running(apartID); got.Stop {
		t.Error("a detached job was stopped")
	}
	_, err = r.client.Launch(r.as(parentID), &clusterapi.LaunchRequest{Request: command("late")})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("launched by a job that has ended: %v", err)
	}
}

func (r *rig) upload(content string) string {
	r.t.Helper()
	sum := sha256.Sum256([]byte(content))
	name := hex.EncodeToString(sum[:])
	if err := r.store.Upload(r.t.Context(), store.BundleKey(name), strings.NewReader(content)); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// TestCallables: a callable runs by fray's own module.
func TestCallables(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	sum := r.upload("pickle")
	request := command("call")
	request.Entrypoint = &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Callable{Callable: &clusterapi.Callable{Sha256: sum}}}
	id := r.launch(r.user(), request)
	j := r.running(id)
	if j.Spec.Environment.Callable != sum || !slices.Equal(j.Spec.Command, []schema.Text{schema.Plain("python"), schema.Plain("-m"), schema.Plain("fray._callable")}) {
		t.Errorf("spec %+v", j.Spec)
	}
	child := r.running(r.launch(r.as(id), command("child")))
	if child.Spec.Environment.Callable != "" {
		t.Errorf("the child has its parent's callable %s", child.Spec.Environment.Callable)
	}
}

func TestNameClashes(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	ask := func(ctx context.Context, clash clusterapi.NameClash, id string) (*clusterapi.LaunchResponse, error) {
		request := command("a")
		request.NameClash = clash
		return r.client.Launch(ctx, &clusterapi.LaunchRequest{Request: request, RequestId: id})
	}
	first, err := ask(r.user(), clusterapi.NameClash_NAME_CLASH_ERROR, "r1")
	if err != nil || first.GetExisted() {
		t.Fatalf("first = %v, %v", first, err)
	}
	r.running(first.GetJobId())
	again, err := ask(r.user(), clusterapi.NameClash_NAME_CLASH_ERROR, "r1")
	if err != nil || again.GetJobId() != first.GetJobId() || !again.GetExisted() {
		t.Errorf("the same request again = %v, %v, want %v", again, err, first)
	}
	if _, err = ask(r.user(), clusterapi.NameClash_NAME_CLASH_UNSPECIFIED, "r2"); status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), "job.a/a lives already") {
		t.Errorf("another request: %v", err)
	}
	kept, err := ask(r.user(), clusterapi.NameClash_NAME_CLASH_KEEP, "r3")
	if err != nil || kept.GetJobId() != first.GetJobId() || !kept.GetExisted() {
		t.Errorf("keep = %v, %v", kept, err)
	}
	made, err := ask(r.user(), clusterapi.NameClash_NAME_CLASH_RECREATE, "r4")
	if err != nil || made.GetJobId() == first.GetJobId() || made.GetExisted() {
		t.Fatalf("recreate = %v, %v", made, err)
	}
	r.running(made.GetJobId())
	old, err := r.client.Poll(r.user(), &clusterapi.PollRequest{JobId: first.GetJobId()})
	if err != nil || old.GetStatus() != clusterapi.JobStatus_JOB_STATUS_STOPPED {
		t.Errorf("the old one is %v, %v", old, err)
	}
	again, err = ask(r.user(), clusterapi.NameClash_NAME_CLASH_ERROR, "r1") // its job is past
	if err != nil || again.GetJobId() != first.GetJobId() || !again.GetExisted() {
		t.Errorf("the first request once more = %v, %v", again, err)
	}
	if _, err := ask(r.as(made.GetJobId()), clusterapi.NameClash_NAME_CLASH_RECREATE, "r5"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a job recreates itself: %v", err)
	}
	r.End(made.GetJobId(), schema.TaskSucceeded)
	r.until(made.GetJobId(), "ended", func(j *state.Job) bool { return j.Status == schema.JobSucceeded })
	fresh, err := ask(r.user(), clusterapi.NameClash_NAME_CLASH_ERROR, "r6")
	if err != nil || fresh.GetJobId() == made.GetJobId() {
		t.Errorf("the name of one that has ended = %v, %v", fresh, err)
	}
}

// TestLaunchRejections: every request that is rejected, with the field, and that
// nothing of it was launched.
func TestLaunchRejections(t *testing.T) {
	absent := strings.Repeat("ab", 32)
	tests := []struct {
		name   string
		change func(*clusterapi.JobRequest)
		code   codes.Code
		field  string // of the first violation, "" for none
		detail string
	}{
		{"no name", func(r *clusterapi.JobRequest) { r.Name = "" }, codes.InvalidArgument, "request.name", "cannot name a job"},
		{"a name for addresses", func(r *clusterapi.JobRequest) { r.Name = "a.job.b" }, codes.InvalidArgument, "request.name", "cannot name a job"},
		{"no entrypoint", func(r *clusterapi.JobRequest) { r.Entrypoint = nil }, codes.InvalidArgument, "request.entrypoint", "a command"},
		{"no program", func(r *clusterapi.JobRequest) { r.Entrypoint.GetCommand().Words = nil }, codes.InvalidArgument, "request.entrypoint.command.words", "no program"},
		{"no such TPU", func(r *clusterapi.JobRequest) { r.Resources = &clusterapi.Resources{Tpu: "v5litepod-17"} }, codes.InvalidArgument, "request.resources.tpu", "the nearest are"},
		{"no such GPU", func(r *clusterapi.JobRequest) { r.Resources = &clusterapi.Resources{Gpu: &clusterapi.Gpu{Type: "h10"}} }, codes.InvalidArgument, "request.resources.gpu.type", "did you mean \"h100\"?"},
		{"too few GPUs", func(r *clusterapi.JobRequest) {
			r.Resources = &clusterapi.Resources{Gpu: &clusterapi.Gpu{Type: "h100", Count: -1}}
		}, codes.InvalidArgument, "request.resources.gpu.count", "1 or more"},
		{"TPU and GPUs", func(r *clusterapi.JobRequest) {
			r.Resources = &clusterapi.Resources{Tpu: "v5litepod-16", Gpu: &clusterapi.Gpu{Type: "h100"}}
		}, codes.InvalidArgument, "request.resources.gpu", "has a TPU or GPUs"},
		{"TPU and cores", func(r *clusterapi.JobRequest) { r.Resources = &clusterapi.Resources{Tpu: "v5litepod-16", Cpu: 1} }, codes.InvalidArgument, "request.resources.cpu", "brings its own machines"},
		{"a number that is none", func(r *clusterapi.JobRequest) { r.Resources = &clusterapi.Resources{Cpu: -1} }, codes.InvalidArgument, "request.resources.cpu", "above zero"},
		{"a port twice", func(r *clusterapi.JobRequest) {
			r.Resources = &clusterapi.Resources{Ports: []*clusterapi.Port{{Name: "a"}, {Name: "a", Number: 1}}}
		}, codes.InvalidArgument, "request.resources.ports[1].name", "twice"},
		{"a duration out of range", func(r *clusterapi.JobRequest) { r.Timeout = &durationpb.Duration{Seconds: 1, Nanos: -1} }, codes.InvalidArgument, "request.timeout", "signs"},
		{"an unknown band", func(r *clusterapi.JobRequest) { r.Band = 9 }, codes.InvalidArgument, "request.band", "production"},
		{"an unknown clash", func(r *clusterapi.JobRequest) { r.NameClash = 9 }, codes.InvalidArgument, "request.name_clash", "recreate"},
		{"a check of nothing", func(r *clusterapi.JobRequest) { r.HealthCheck = &clusterapi.HealthCheck{} }, codes.InvalidArgument, "request.health_check", "one of http"},
		{"a namespace that is none", func(r *clusterapi.JobRequest) { r.Namespace = "a b" }, codes.InvalidArgument, "request.namespace", "cannot name a namespace"},
		{"an unknown reservation", func(r *clusterapi.JobRequest) { r.Resources = &clusterapi.Resources{ReservationId: "pol"} }, codes.NotFound, "request.resources.reservation_id", `Did you mean "pool"?`},
		{"a bundle that is not there", func(r *clusterapi.JobRequest) { r.Environment = &clusterapi.Environment{Bundle: absent} }, codes.NotFound, "request.environment.bundle", "upload it"},
		{"a callable that is not there", func(r *clusterapi.JobRequest) {
			r.Entrypoint = &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Callable{Callable: &clusterapi.Callable{Sha256: absent}}}
		}, codes.NotFound, "request.entrypoint.callable.sha256", "upload it"},
		{"a hash that is none", func(r *clusterapi.JobRequest) { r.Environment = &clusterapi.Environment{Bundle: "../x"} }, codes.InvalidArgument, "request.environment.bundle", "64 lower-case"},
		{"a callable without a hash", func(r *clusterapi.JobRequest) {
			r.Entrypoint = &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Callable{Callable: &clusterapi.Callable{}}}
		}, codes.InvalidArgument, "request.entrypoint.callable.sha256", "SHA-256"},
		{"never", func(r *clusterapi.JobRequest) { r.Resources = &clusterapi.Resources{Slices: 11} }, codes.FailedPrecondition, "", "provider local has 10"},
	}
	stack := accesstest.LocalStack()
	stack.Reservations = []schema.Reservation{{
		Addr: schema.Address{Kind: schema.KindReservation, Name: "pool"}, Provider: schema.ProviderLocal,
		Min: schema.Capacity{TPU: "v5litepod-4"}, Max: schema.Capacity{TPU: "v5litepod-4", Slices: 1},
	}}
	r := newRig(t, stack)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			request := command("a")
			tt.change(request)
			_, err := r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: request})
			if status.Code(err) != tt.code || !strings.Contains(status.Convert(err).Message(), tt.detail) {
				t.Fatalf("got %v, want %s with %q", err, tt.code, tt.detail)
			}
			if got := violations(err); tt.field != "" && (len(got) == 0 || got[0] != tt.field) {
				t.Errorf("fields %q, want %q", got, tt.field)
			}
		})
	}
	if n := len(r.View().Doc.Jobs); n != 0 {
		t.Errorf("%d jobs were launched by refused requests", n)
	}
	_, err := r.client.Launch(r.user(), &clusterapi.LaunchRequest{})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("nothing to launch: %v", err)
	}
	_, err = r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: command("a"), RequestId: strings.Repeat("x", 65)})
	if got := violations(err); len(got) != 1 || got[0] != "request_id" {
		t.Errorf("a long request id: %v", err)
	}
	_, err = r.client.Launch(t.Context(), &clusterapi.LaunchRequest{Request: command("a")})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a caller: %v", err)
	}
}

// violations are the fields that an error names.
func violations(err error) []string {
	var fields []string
	for _, d := range status.Convert(err).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return fields
}

// TestJobsKeepToTheirOwn: a job's namespace and user are its own.
func TestJobsKeepToTheirOwn(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	request := command("a")
	request.Namespace = "rl"
	id := r.launch(r.user(), request)
	r.running(id)
	for name, change := range map[string]func(*clusterapi.JobRequest){
		"namespace": func(r *clusterapi.JobRequest) { r.Namespace = "other" },
		"user":      func(r *clusterapi.JobRequest) { r.User = "bob" },
	} {
		child := command("b")
		change(child)
		if _, err := r.client.Launch(r.as(id), &clusterapi.LaunchRequest{Request: child}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "request."+name) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// TestRecreateIsEnding: who may not end a job may not put another in its place.
func TestRecreateIsEnding(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	ids := map[string]string{}
	for _, name := range []string{"a", "b"} {
		request := command(name)
		request.Namespace = "rl"
		ids[name] = r.launch(r.user(), request)
		r.running(ids[name])
	}
	request := command("b")
	request.NameClash = clusterapi.NameClash_NAME_CLASH_RECREATE
	if _, err := r.client.Launch(r.as(ids["a"]), &clusterapi.LaunchRequest{Request: request}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a recreates b: %v", err)
	}
	r.running(ids["b"])
	child := r.launch(r.as(ids["a"]), command("child"))
	r.running(child)
	request.Name = "child"
	if got := r.launch(r.as(ids["a"]), request); got == child {
		t.Error("a did not recreate what it launched")
	}
}

// TestLaunchWithoutALeader: the caller may try again.
func TestLaunchWithoutALeader(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	r.RejectChanges(context.Canceled)
	_, err := r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: command("a")})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want UNAVAILABLE", err)
	}
}

// TestLaunchDeadline: a job whose name does not become free in time is not launched.
func TestLaunchDeadline(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	first := r.launch(r.user(), command("a"))
	r.running(first)
	r.IgnoreAssignments()
	request := command("a")
	request.NameClash = clusterapi.NameClash_NAME_CLASH_RECREATE
	ctx, cancel := context.WithTimeout(r.user(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.client.Launch(ctx, &clusterapi.LaunchRequest{Request: request}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
	if jobs := r.View().Doc.Jobs; len(jobs) != 1 {
		t.Errorf("%d jobs, want the first", len(jobs))
	}
}
