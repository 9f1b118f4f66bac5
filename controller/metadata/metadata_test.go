package metadata

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// registrar is a metadata server that leads in a test.
type registrar struct {
	*Server
	board *accesstest.Fixed
	lose  context.CancelFunc // the lease
}

// newRegistrar leads under an epoch once jobs are seen.
func newRegistrar(t *testing.T, s store.Store, epoch uint64, jobs ...*state.Job) *registrar {
	t.Helper()
	r := &registrar{Server: New(s, slog.New(slog.DiscardHandler), time.Now), board: accesstest.NewFixed()}
	lease, lose := accesstest.NewLease(t, epoch)
	r.lose = lose
	r.Lead(lease, r.board)
	r.board.Show(epoch, jobs...)
	synctest.Wait()
	return r
}

func asJob(t *testing.T, namespace, name string, attempt int) context.Context {
	return caller.With(t.Context(), caller.Caller{Kind: caller.Job, Namespace: namespace, JobID: name + "-id", Attempt: attempt})
}

func asUser(t *testing.T) context.Context {
	return caller.With(t.Context(), caller.Caller{Kind: caller.User, User: "ann"})
}

func (r *registrar) mustRegister(ctx context.Context, t *testing.T, in *clusterapi.RegisterRequest) string {
	t.Helper()
	if in.GetAddress() == "" {
		in.Address = fmt.Sprintf("10.0.0.%d:80", in.GetTask()+1)
	}
	out, err := r.Register(ctx, in)
	if err != nil {
		t.Fatalf("register %s: %v", in.GetName(), err)
	}
	return out.GetActorId()
}

// found is the id that a name leads to, "" for none.
func (r *registrar) found(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	got, err := r.Lookup(ctx, &clusterapi.LookupRequest{Name: name})
	if status.Code(err) == codes.NotFound {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return got.GetActorId()
}

// watchStream is a client's end of Watch.
type watchStream struct {
	grpc.ServerStream
	ctx  context.Context
	sent chan *clusterapi.WatchResponse
	done chan error
}

func (w *watchStream) Context() context.Context { return w.ctx }

func (w *watchStream) Send(m *clusterapi.WatchResponse) error {
	select {
	case w.sent <- m:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (r *registrar) watching(ctx context.Context, t *testing.T, in *clusterapi.WatchRequest) *watchStream {
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	w := &watchStream{ctx: ctx, sent: make(chan *clusterapi.WatchResponse, 100), done: make(chan error, 1)}
	go func() { w.done <- r.Watch(in, w) }()
	synctest.Wait()
	return w
}

// got is the next message in short: "+name", "-id", "reset".
func (w *watchStream) got(t *testing.T) []string {
	t.Helper()
	synctest.Wait()
	select {
	case m := <-w.sent:
		var words []string
		if m.GetReset_() {
			words = append(words, "reset")
		}
		for _, e := range m.GetAdded() {
			words = append(words, "+"+e.GetName())
		}
		for _, id := range m.GetRemoved() {
			words = append(words, "-"+id)
		}
		return words
	default:
		return nil
	}
}

func TestExpiresUnlessRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1))
		defer r.lose()
		job := asJob(t, "rl", "train", 1)
		in := &clusterapi.RegisterRequest{Name: "x", Ttl: durationpb.New(10 * time.Second)}
		in.ActorId = r.mustRegister(job, t, in)
		for range 3 {
			time.Sleep(9 * time.Second)
			if again := r.mustRegister(job, t, in); again != in.GetActorId() {
				t.Fatalf("renewed it is %s, want %s", again, in.GetActorId())
			}
		}
		time.Sleep(9 * time.Second)
		if r.found(job, t, "x") == "" {
			t.Error("it is gone 9 s after it was renewed")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.found(job, t, "x"); got != "" {
			t.Errorf("%s is there 10 s after it was renewed", got)
		}
		if again := r.mustRegister(job, t, in); again != in.GetActorId() || r.found(job, t, "x") != again {
			t.Errorf("registered again it is %s, want %s back", again, in.GetActorId())
		}
	})
}

func TestRegisterRefuses(t *testing.T) {
	long := strings.Repeat("x", 5000)
	good := func(change func(*clusterapi.RegisterRequest)) *clusterapi.RegisterRequest {
		r := &clusterapi.RegisterRequest{Name: "x", Address: "h:1"}
		change(r)
		return r
	}
	tests := []struct {
		name    string
		user    bool
		request *clusterapi.RegisterRequest
		code    codes.Code
		fields  []string
	}{
		{"all that can be wrong", false, &clusterapi.RegisterRequest{
			Name: "-x", Address: "h", Metadata: map[string]string{"k": long}, Task: -1, Ttl: durationpb.New(time.Millisecond),
			ActorId: "x", RequestId: long,
		}, codes.InvalidArgument, []string{"actor_id", "address", "metadata", "name", "request_id", "task", "ttl"}},
		{"a port that is none", false, good(func(r *clusterapi.RegisterRequest) { r.Address = "h:70000" }), codes.InvalidArgument, []string{"address"}},
		{"no host", false, good(func(r *clusterapi.RegisterRequest) { r.Address = ":80" }), codes.InvalidArgument, []string{"address"}},
		{"a task that there is not", false, good(func(r *clusterapi.RegisterRequest) { r.Task = 2 }), codes.InvalidArgument, []string{"task"}},
		{"a user's of no job", true, good(func(*clusterapi.RegisterRequest) {}), codes.InvalidArgument, []string{"job_id"}},
		{"a user's of an unknown job", true, good(func(r *clusterapi.RegisterRequest) { r.JobId = "y" }), codes.NotFound, nil},
		{"a user's of an ended job", true, good(func(r *clusterapi.RegisterRequest) { r.JobId = "done-id" }), codes.FailedPrecondition, nil},
		{"a user's of a running job", true, good(func(r *clusterapi.RegisterRequest) { r.JobId = "train-id" }), codes.OK, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1), accesstest.EndedJob("rl", "done", 1))
				defer r.lose()
				ctx := asJob(t, "rl", "train", 1)
				if test.user {
					ctx = asUser(t)
				}
				_, err := r.Register(ctx, test.request)
				if status.Code(err) != test.code {
					t.Errorf("got %v, want %s", err, test.code)
				}
				var fields []string
				for _, detail := range status.Convert(err).Details() {
					if bad, ok := detail.(*errdetails.BadRequest); ok {
						for _, f := range bad.GetFieldViolations() {
							fields = append(fields, f.GetField())
						}
					}
				}
				if !slices.Equal(fields, test.fields) {
					t.Errorf("the fields %q are named, want %q", fields, test.fields)
				}
			})
		})
	}
}

func TestUnregister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		r := newRegistrar(t, s, 1, accesstest.RunningJob("rl", "train", 1), accesstest.RunningJob("rl", "eval", 1))
		defer r.lose()
		train, eval := asJob(t, "rl", "train", 1), asJob(t, "rl", "eval", 1)
		id := r.mustRegister(train, t, &clusterapi.RegisterRequest{Name: "x"})
		if _, err := r.Unregister(eval, &clusterapi.UnregisterRequest{ActorId: id}); status.Code(err) != codes.PermissionDenied || r.found(train, t, "x") != id {
			t.Errorf("another job: %v, want PERMISSION_DENIED", err)
		}
		for range 2 {
			if _, err := r.Unregister(train, &clusterapi.UnregisterRequest{ActorId: id}); err != nil || r.found(train, t, "x") != "" {
				t.Errorf("its own: %v, want it gone, however often", err)
			}
		}
		object, err := s.Get(t.Context(), store.EndpointsKey)
		if err != nil || strings.Contains(string(object.Data), id) {
			t.Errorf("saved is %s, %v", object.Data, err)
		}
		byUser := r.mustRegister(train, t, &clusterapi.RegisterRequest{Name: "x"})
		if _, err := r.Unregister(asUser(t), &clusterapi.UnregisterRequest{ActorId: byUser}); err != nil || r.found(train, t, "x") != "" {
			t.Errorf("a user: %v, want it gone", err)
		}
	})
}

func TestReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistrar(t, storetest.NewMemory(), 1, accesstest.RunningJob("rl", "train", 1))
		defer r.lose()
		job := asJob(t, "rl", "train", 1)
		for _, name := range []string{"b/1", "a", "b/0", "c"} {
			r.mustRegister(job, t, &clusterapi.RegisterRequest{Name: name})
		}
		names := func(prefix string) []string {
			t.Helper()
			all, err := r.ListActors(job, &clusterapi.ListActorsRequest{Prefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range all.GetActors() {
				names = append(names, e.GetName())
			}
			return names
		}
		if got, want := names(""), []string{"a", "b/0", "b/1", "c"}; !slices.Equal(got, want) {
			t.Errorf("all are %q, want %q", got, want)
		}
		if got, want := names("b/"), []string{"b/0", "b/1"}; !slices.Equal(got, want) {
			t.Errorf("of b/ there are %q, want %q", got, want)
		}
		_, err := r.Lookup(job, &clusterapi.LookupRequest{Name: "b/2"})
		if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `no actor "b/2" is registered in namespace "rl"; near it are b/0, b/1`) {
			t.Errorf("got %v, want NOT_FOUND with near names", err)
		}
		want := &clusterapi.ActorNotFound{Name: "b/2", Namespace: "rl", Near: []string{"b/0", "b/1"}}
		if details := status.Convert(err).Details(); len(details) != 1 || !proto.Equal(details[0].(proto.Message), want) {
			t.Errorf("its details are %v, want %v", details, want)
		}
		none, err := r.LookupAll(job, &clusterapi.LookupRequest{Name: "b/2"})
		if err != nil || len(none.GetActors()) != 0 {
			t.Errorf("got %v, %v; want none, which is no error", none, err)
		}
		if _, err := r.Lookup(asUser(t), &clusterapi.LookupRequest{Name: "a"}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a user who names no namespace: %v", err)
		}
		if _, err := r.Lookup(asUser(t), &clusterapi.LookupRequest{Name: "a", Namespace: "rl"}); err != nil {
			t.Errorf("a user: %v", err)
		}
		both := r.watching(job, t, &clusterapi.WatchRequest{Name: "a", Prefix: "b"})
		if err := <-both.done; status.Code(err) != codes.InvalidArgument {
			t.Errorf("a name and a prefix: %v", err)
		}
		w := r.watching(job, t, &clusterapi.WatchRequest{Prefix: "b/"})
		r.lose()
		if err := <-w.done; status.Code(err) != codes.Unavailable {
			t.Errorf("without the lease: %v, want UNAVAILABLE", err)
		}
	})
}
