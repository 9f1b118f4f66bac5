package host

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// directory is a cluster that registers names.
type directory struct {
	clusterapi.UnimplementedMetadataServer
	address string

	mu         sync.Mutex
	refuse     []codes.Code // the next calls of Register; OK is none
	names      map[string]*clusterapi.RegisterRequest
	tokens     []string
	tries      int
	leaderless bool // as an agent reports
}

func newDirectory(t testing.TB, refuse ...codes.Code) *directory {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &directory{address: listener.Addr().String(), refuse: refuse, names: map[string]*clusterapi.RegisterRequest{}}
	server := grpc.NewServer()
	clusterapi.RegisterMetadataServer(server, d)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return d
}

func (d *directory) Register(ctx context.Context, in *clusterapi.RegisterRequest) (*clusterapi.RegisterResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	md, _ := metadata.FromIncomingContext(ctx)
	if d.leaderless && len(md.Get(clusterapi.NoWaitHeader)) > 0 {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(clusterapi.ReasonTrailer, clusterapi.ReasonNoController))
		return nil, status.Error(codes.Unavailable, "no controller leads")
	}
	if len(d.refuse) > 0 {
		code := d.refuse[0]
		d.refuse = d.refuse[1:]
		if code != codes.OK {
			return nil, status.Error(code, "because of "+code.String())
		}
	}
	d.tokens = append(d.tokens, md.Get("authorization")...)
	d.names[in.GetActorId()] = in
	return &clusterapi.RegisterResponse{ActorId: in.GetActorId()}, nil
}

func (d *directory) Unregister(_ context.Context, in *clusterapi.UnregisterRequest) (*clusterapi.UnregisterResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[in.GetActorId()] == nil {
		return nil, status.Error(codes.NotFound, "there is none")
	}
	delete(d.names, in.GetActorId())
	return &clusterapi.UnregisterResponse{}, nil
}

func (d *directory) registered() []*clusterapi.RegisterRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.names))
}

// member is a configuration that registers at the directory.
func (d *directory) member(t testing.TB) Config {
	t.Helper()
	variables := map[string]string{
		"FRAY_CLUSTER_ADDRESS": d.address, "FRAY_CLUSTER_TOKEN": "secret", "FRAY_JOB_ID": "job-1", "FRAY_TASK_INDEX": "3",
		"FRAY_NAMESPACE": "rl", "FRAY_HOST_ADDRESS": "127.0.0.1",
	}
	cfg, release, err := FromEnvironment(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return cfg
}

func TestFact22NamesAreRegisteredWhileTheServerServes(t *testing.T) {
	d := newDirectory(t)
	s := started(t, d.member(t), map[string]any{"counter": newLesson()}, Options{Metadata: map[string]string{"model": "small"}, Unique: true})
	all := d.registered()
	if len(all) != 1 {
		t.Fatalf("got %d names, want one", len(all))
	}
	r := all[0]
	want := map[string]string{"protocol": "fray-actor/1", "language": "go", "class": "*host.lesson", "model": "small"}
	if r.GetName() != "counter" || r.GetAddress() != s.Address() || r.GetJobId() != "job-1" || r.GetTask() != 3 || !r.GetUnique() || !maps.Equal(r.GetMetadata(), want) {
		t.Errorf("got %v", r)
	}
	if d.tokens[0] != "Bearer secret" {
		t.Errorf("got token %q", d.tokens[0])
	}
	c := connect(t, s, "a")
	if reply, _ := c.await(c.begin("counter", "seen")); reply.GetIncarnation() != r.GetActorId() {
		t.Errorf("registered is %q, and %q answers", r.GetActorId(), reply.GetIncarnation())
	}
	c.net.Close()
	incarnation, err := s.Register("late", newLesson(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(d.registered(), func(r *clusterapi.RegisterRequest) bool {
		return r.GetActorId() == incarnation && r.GetName() == "late"
	}) {
		t.Errorf("got %v, want the name that came late with its incarnation", d.registered())
	}
	if err := s.Unregister(t.Context(), "late"); err != nil || len(d.registered()) != 1 {
		t.Errorf("got %v and %d names, want one", err, len(d.registered()))
	}
	if err := s.Shutdown(t.Context()); err != nil || len(d.registered()) != 0 {
		t.Errorf("got %v and %d names, want none", err, len(d.registered()))
	}
}

func TestRegisteringWaitsForALeader(t *testing.T) {
	d := newDirectory(t, codes.Unavailable, codes.Unavailable)
	s, err := New(d.member(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Register("counter", newLesson(), Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	until(t, "it listens", func() bool { return s.Address() != "" })
	ready := func() bool {
		code, _ := get(t, http.DefaultClient, "http://"+s.Address()+"/readyz")
		return code == 200
	}
	d.mu.Lock() // no registration comes meanwhile
	if d.tries < 3 && ready() {
		t.Error("it is ready before it is registered")
	}
	d.mu.Unlock()
	until(t, "it is ready", ready)
	if d.tries != 3 || len(d.registered()) != 1 {
		t.Errorf("got %d tries, %d names; want 3, one", d.tries, len(d.registered()))
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestWhatTheClusterRefuses(t *testing.T) {
	tests := []struct {
		name string
		code codes.Code
		want RegisterProblem
	}{
		{"the task has ended", codes.FailedPrecondition, ProblemEnded},
		{"the job is gone", codes.NotFound, ProblemEnded},
		{"the name is taken", codes.AlreadyExists, ProblemDuplicate},
		{"the name is none", codes.InvalidArgument, ProblemRefused},
		{"the token is none", codes.Unauthenticated, ProblemRefused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := New(newDirectory(t, test.code).member(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Register("counter", newLesson(), Options{}); err != nil {
				t.Fatal(err)
			}
			err = s.Start(t.Context())
			problem, ok := errors.AsType[*RegisterError](err)
			if !ok || problem.Problem != test.want || problem.Name != "counter" || problem.Message != "because of "+test.code.String() {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if conn, err := net.Dial("tcp", s.Address()); err == nil {
				conn.Close()
				t.Error("it still listens")
			}
		})
	}
	t.Run("a name that comes late", func(t *testing.T) {
		s := started(t, newDirectory(t, codes.OK, codes.AlreadyExists).member(t), map[string]any{"first": newLesson()}, Options{})
		_, err := s.Register("counter", newLesson(), Options{Unique: true})
		if problem, ok := errors.AsType[*RegisterError](err); !ok || problem.Problem != ProblemDuplicate {
			t.Errorf("got %v", err)
		}
		if len(s.listActors("")) != 1 {
			t.Errorf("got %v, want the first only", s.listActors(""))
		}
	})
	t.Run("one of two", func(t *testing.T) {
		d := newDirectory(t, codes.OK, codes.AlreadyExists)
		s, err := New(d.member(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"first", "second"} {
			if _, err := s.Register(name, newLesson(), Options{Unique: true}); err != nil {
				t.Fatal(err)
			}
		}
		if problem, ok := errors.AsType[*RegisterError](s.Start(t.Context())); !ok || problem.Problem != ProblemDuplicate {
			t.Errorf("got %v", problem)
		}
		if got := d.registered(); len(got) != 0 {
			t.Errorf("got %v in the cluster, want none of a server that did not start", got)
		}
	})
	t.Run("no leader for as long as there is time", func(t *testing.T) {
		d := newDirectory(t, slices.Repeat([]codes.Code{codes.Unavailable}, 1000)...)
		s, err := New(d.member(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Register("counter", newLesson(), Options{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if problem, ok := errors.AsType[*RegisterError](s.Start(ctx)); !ok || problem.Problem != ProblemGaveUp {
			t.Errorf("got %v", problem)
		}
	})
}

func TestFact34ARaceYieldsOneActor(t *testing.T) {
	s := started(t, Config{}, nil, Options{})
	const racers = 16
	won := make(chan string, racers)
	var all sync.WaitGroup
	for range racers {
		all.Go(func() {
			id, err := s.Register("counter", newLesson(), Options{})
			if err == nil {
				won <- id
				return
			}
			if problem, ok := errors.AsType[*RegisterError](err); !ok || problem.Problem != ProblemDuplicate {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if actors := s.listActors(""); len(won) != 1 || len(actors) != 1 || actors[0].GetIncarnation() != <-won {
		t.Errorf("got %d winners and %v, want the one", len(won), actors)
	}
}

func TestWhatCannotBeRegistered(t *testing.T) {
	s := started(t, Config{}, nil, Options{})
	shared := newLesson()
	if _, err := s.Register("shared", shared, Options{MaxConcurrency: 2}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, actor string
		value       any
		options     Options
		want        string
	}{
		{"no name", "", newLesson(), Options{}, "want a name"},
		{"a name that is no UTF-8", "x\xff", newLesson(), Options{}, "is no UTF-8"},
		{"parameters that are no UTF-8", "x", newLesson(), Options{Methods: map[string]MethodOptions{"increment": {Params: []string{"\xff"}}}}, "is no UTF-8"},
		{"a text that is no UTF-8", "x", newLesson(), Options{Methods: map[string]MethodOptions{"increment": {Doc: "\xff"}}}, "is no UTF-8"},
		{"a group that is no UTF-8", "x", newLesson(), Options{Groups: map[string]int{"\xff": 1}}, "is no UTF-8"},
		{"nil", "x", nil, Options{}, "not nil"},
		{"a nil pointer", "x", (*lesson)(nil), Options{}, "not nil"},
		{"no methods", "x", 5, Options{}, "int has no method that can be called"},
		{"two methods of one name", "x", twice{}, Options{}, `methods GETx and GeTx are both called "ge_tx"`},
		{"an unknown method", "x", newLesson(), Options{Methods: map[string]MethodOptions{"fly": {}}}, `method "fly"`},
		{"an unknown group", "x", newLesson(), Options{Methods: map[string]MethodOptions{"panic": {Group: "io"}}}, `group "io"`},
		{"an empty group", "x", newLesson(), Options{Groups: map[string]int{"io": 0}}, "want a name and at least 1"},
		{"names for other parameters", "x", newLesson(), Options{Methods: map[string]MethodOptions{"increment": {Params: []string{"a", "b"}}}}, "has 1 parameter and 2 names"},
		{"another concurrency of one object", "x", shared, Options{}, "another concurrency"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := s.Register(test.actor, test.value, test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want …%s…", err, test.want)
			}
		})
	}
	if _, err := s.Register("again", shared, Options{MaxConcurrency: 2}); err != nil {
		t.Error(err)
	}
}

type twice struct{}

func (twice) GETx() {}
func (twice) GeTx() {}
