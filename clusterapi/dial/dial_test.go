package dial_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// controller is a server that answers health checks: with its name as the
// error's text, or what refuse says.
type controller struct {
	healthpb.UnimplementedHealthServer
	name        string
	address     string
	fingerprint string
	server      *grpc.Server
	refuse      atomic.Pointer[status.Status]
	calls       atomic.Int64
	tokens      chan string
	refused     chan string
	watching    chan struct{}
}

func serve(t *testing.T, name string) *controller {
	t.Helper()
	certificate, err := dial.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{
		name: name, address: listener.Addr().String(), fingerprint: dial.Fingerprint(certificate),
		tokens: make(chan string, 1000), refused: make(chan string, 1000), watching: make(chan struct{}, 10),
	}
	c.server = grpc.NewServer(grpc.Creds(dial.ServerCredentials(certificate, func(_ net.Addr, err error) { c.refused <- err.Error() })))
	healthpb.RegisterHealthServer(c.server, c)
	go func() {
		if err := c.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("%s serves no more: %v", name, err)
		}
	}()
	t.Cleanup(c.server.Stop)
	return c
}

func (c *controller) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	c.calls.Add(1)
	if rejection := c.refuse.Load(); rejection != nil {
		return nil, rejection.Err()
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	c.tokens <- strings.Join(incoming.Get(dial.Header), ",")
	return nil, status.Error(codes.NotFound, c.name)
}

func (c *controller) Watch(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) error {
	if rejection := c.refuse.Load(); rejection != nil {
		return rejection.Err()
	}
	if err := s.Send(&healthpb.HealthCheckResponse{}); err != nil {
		return err
	}
	c.watching <- struct{}{}
	<-s.Context().Done()
	return s.Context().Err()
}

func (c *controller) lease() store.Lease {
	now := time.Now()
	return store.Lease{
		Holder: c.name, User: "ann", Host: c.name, PID: 7, Command: "fray watch", RenewedAt: now, ExpiresAt: now.Add(time.Hour),
		ControllerAddress: c.address, ControllerFingerprint: c.fingerprint,
	}
}

func put(t *testing.T, s store.Store, l store.Lease) {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.LeaseKey, data, store.Any); err != nil {
		t.Fatal(err)
	}
}

// ask returns the name of the controller that answers, or the error.
func ask(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if status.Code(err) == codes.NotFound {
		return status.Convert(err).Message(), nil
	}
	return "", err
}

// toldWithin asks with ever later deadlines, until the error is one that a busy
// machine may not come to in a short time.
func toldWithin(t *testing.T, d time.Duration, conn grpc.ClientConnInterface, told string) error {
	t.Helper()
	for {
		_, err := ask(within(t, d), conn)
		if err == nil || strings.Contains(err.Error(), told) || d > time.Minute {
			return err
		}
		d *= 2
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func follow(t *testing.T, s store.Store) *dial.Following {
	t.Helper()
	f := dial.Follow(dial.FollowConfig{Store: s})
	t.Cleanup(func() { f.Close() })
	return f
}

func wantAnswer(t *testing.T, conn grpc.ClientConnInterface, want string) {
	t.Helper()
	if got, err := ask(within(t, 5*time.Minute), conn); err != nil || got != want {
		t.Fatalf("%q answers, %v; want %s", got, err, want)
	}
}

func TestFollowsTheLease(t *testing.T) {
	s := storetest.NewMemory()
	a, b := serve(t, "a"), serve(t, "b")
	put(t, s, a.lease())
	f := follow(t, s)
	wantAnswer(t, f, "a")
	if l, err := f.Leader(t.Context()); err != nil || l.Host != "a" {
		t.Errorf("the leader is %s, %v; want a", l.Host, err)
	}

	t.Run("a controller that says it leads no more", func(t *testing.T) {
		a.refuse.Store(status.New(codes.Unavailable, "b leads"))
		put(t, s, b.lease())
		wantAnswer(t, f, "b")
	})
	t.Run("one that died", func(t *testing.T) {
		b.server.Stop()
		c := serve(t, "c")
		done := make(chan string, 1)
		go func() {
			got, err := ask(within(t, 5*time.Minute), f)
			if err != nil {
				got = err.Error()
			}
			done <- got
		}()
		put(t, s, c.lease())
		if got := <-done; got != "c" {
			t.Errorf("the call that was waiting got %q, want an answer of c", got)
		}
	})
}

// A controller that starts again at the same address has another certificate.
func TestRestartAtTheSameAddress(t *testing.T) {
	s := storetest.NewMemory()
	a := serve(t, "a")
	imposter := serve(t, "imposter")
	l := a.lease()
	l.ControllerAddress = imposter.address
	put(t, s, l)
	f := follow(t, s)
	err := toldWithin(t, 500*time.Millisecond, f, "it is another process")
	if err == nil || !strings.Contains(err.Error(), "it is another process") {
		t.Errorf("a server with another certificate: %v; want it refused", err)
	}
	if n := imposter.calls.Load(); n != 0 {
		t.Errorf("the other process got %d calls", n)
	}
	put(t, s, imposter.lease())
	wantAnswer(t, f, "imposter")
}

func TestSaysWhatWasTried(t *testing.T) {
	dead := serve(t, "dead")
	dead.server.Stop()
	at := time.Now().Add(-time.Hour)
	free := dead.lease()
	free.Released, free.ExpiresAt = true, at
	lapsed := dead.lease()
	lapsed.RenewedAt, lapsed.ExpiresAt = at, at.Add(15*time.Second)
	silent := dead.lease()
	silent.ControllerAddress, silent.Command = "", "fray apply"
	when := at.Local().Format("15:04:05")
	tests := []struct {
		name  string
		lease *store.Lease
		unled bool
		want  []string
	}{
		{"no lease", nil, true, []string{"no controller has held this stack's lease yet", "start one with fray watch"}},
		{"a free lease", &free, true, []string{"no controller: the lease is free since ", when, "start one with fray watch"}},
		{"a holder that serves nothing", &silent, true, []string{"ann@dead (pid 7, fray apply) holds the lease and serves nothing"}},
		{"a dead holder", &lapsed, false, []string{"ann@dead (pid 7, fray watch) at 127.0.0.1:", "connection refused", "it renewed its lease last at ", when}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := storetest.NewMemory()
			if test.lease != nil {
				put(t, s, *test.lease)
			}
			f := follow(t, s)
			if test.unled {
				_, err := ask(dial.NoWait(within(t, 5*time.Minute)), f)
				if status.Code(err) != codes.Unavailable || !strings.Contains(status.Convert(err).Message(), test.want[0]) || !errors.Is(err, dial.ErrNoController) {
					t.Errorf("a call that does not wait says %v, want Unavailable and %q", err, test.want[0])
				}
			}
			err := toldWithin(t, 700*time.Millisecond, f, test.want[1%len(test.want)])
			if status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("got %v, want DeadlineExceeded", err)
			}
			if got := errors.Is(err, dial.ErrNoController); got != test.unled {
				t.Errorf("got %v, ErrNoController: %t, want %t", err, got, test.unled)
			}
			for _, want := range append(test.want, "(tried ", " times in ") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %q in it", err, want)
				}
			}
		})
	}
}

func TestPatienceWithoutDeadline(t *testing.T) {
	f := dial.Follow(dial.FollowConfig{Store: storetest.NewMemory(), Patience: 200 * time.Millisecond})
	defer f.Close()
	if _, err := ask(t.Context(), f); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want Unavailable once patience is over", err)
	}
}

// What a controller answers is not asked again, whatever it is.
func TestAnswersAreFinal(t *testing.T) {
	s := storetest.NewMemory()
	a := serve(t, "a")
	put(t, s, a.lease())
	f := follow(t, s)
	for _, code := range []codes.Code{codes.Unauthenticated, codes.FailedPrecondition, codes.Internal, codes.Aborted} {
		a.refuse.Store(status.New(code, "no"))
		before := a.calls.Load()
		_, err := ask(within(t, 5*time.Minute), f)
		if status.Code(err) != code || a.calls.Load() != before+1 {
			t.Errorf("%s: got %v after %d calls, want it after one", code, err, a.calls.Load()-before)
		}
	}
}

// A stream ends with UNAVAILABLE when its controller does, and the next one
// goes to who leads then.
func TestStreams(t *testing.T) {
	s := storetest.NewMemory()
	a, b := serve(t, "a"), serve(t, "b")
	put(t, s, a.lease())
	f := follow(t, s)
	open := func() healthpb.Health_WatchClient {
		w, err := healthpb.NewHealthClient(f).Watch(within(t, 5*time.Minute), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Recv(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := open()
	<-a.watching
	put(t, s, b.lease())
	a.server.Stop()
	if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want UNAVAILABLE", err)
	}
	open()
	<-b.watching
}

// A stream to a controller that was left for another one is cut off, as
// UNAVAILABLE and not as a cancellation by the caller.
func TestStreamOfARetiredController(t *testing.T) {
	s := storetest.NewMemory()
	a, b := serve(t, "a"), serve(t, "b")
	put(t, s, a.lease())
	f := follow(t, s)
	w, err := healthpb.NewHealthClient(f).Watch(within(t, 5*time.Minute), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	<-a.watching
	put(t, s, b.lease())
	a.refuse.Store(status.New(codes.Unavailable, "b leads"))
	wantAnswer(t, f, "b")
	for err == nil {
		_, err = w.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want UNAVAILABLE", err)
	}
}

// A controller that hangs says nothing; its calls end once the lease is another's.
func TestHangingController(t *testing.T) {
	s := storetest.NewMemory()
	a, b := serve(t, "a"), serve(t, "b")
	put(t, s, a.lease())
	f := dial.Follow(dial.FollowConfig{Store: s, Recheck: 50 * time.Millisecond})
	defer f.Close()
	w, err := healthpb.NewHealthClient(f).Watch(within(t, 5*time.Minute), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	<-a.watching
	put(t, s, b.lease())
	for err == nil {
		_, err = w.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want UNAVAILABLE", err)
	}
	wantAnswer(t, f, "b")
}

func TestToken(t *testing.T) {
	a := serve(t, "a")
	token := func(context.Context) (string, error) { return "xyz", nil }
	conn, err := dial.Open(a.address, a.fingerprint, token)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wantAnswer(t, conn, "a")
	if got := <-a.tokens; got != "Bearer xyz" {
		t.Errorf("the server saw %q, want Bearer xyz", got)
	}

	t.Run("not over a connection that pins nothing", func(t *testing.T) {
		config, err := dial.ClientTLS(a.fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		config.VerifyConnection = nil // trusts anybody
		loose, err := grpc.NewClient("passthrough:///"+a.address,
			grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithPerRPCCredentials(dial.Bearer(token)))
		if err != nil {
			t.Fatal(err)
		}
		defer loose.Close()
		before := a.calls.Load()
		_, err = ask(within(t, 5*time.Minute), loose)
		if err == nil || !strings.Contains(err.Error(), "not pinned") || a.calls.Load() != before {
			t.Errorf("got %v after %d calls, want the token kept back", err, a.calls.Load()-before)
		}
	})
	t.Run("not in plain text", func(t *testing.T) {
		_, err := grpc.NewClient("passthrough:///"+a.address,
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(dial.Bearer(token)))
		if err == nil {
			t.Error("a plain connection took the credentials")
		}
	})
}

// What fails before a call is told to the server's owner.
func TestHandshakesRefused(t *testing.T) {
	a, b := serve(t, "a"), serve(t, "b")
	t.Run("plain text", func(t *testing.T) {
		conn, err := grpc.NewClient("passthrough:///"+a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := ask(within(t, 5*time.Minute), conn); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want UNAVAILABLE", err)
		}
		if got := <-a.refused; !strings.Contains(got, "tls: first record does not look like a TLS handshake") {
			t.Errorf("the server heard %q", got)
		}
	})
	t.Run("another certificate than expected", func(t *testing.T) {
		conn, err := dial.Open(b.address, a.fingerprint, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := ask(within(t, 5*time.Minute), conn); err == nil || !strings.Contains(err.Error(), "it is another process") {
			t.Errorf("got %v, want the certificate refused", err)
		}
		if got := <-b.refused; !strings.Contains(got, "bad certificate") {
			t.Errorf("the server heard %q", got)
		}
	})
	t.Run("a fingerprint that is none", func(t *testing.T) {
		if _, err := dial.Open(a.address, "abc", nil); err == nil {
			t.Error("it was taken")
		}
	})
}

func TestBearerToken(t *testing.T) {
	tests := []struct {
		name   string
		values []string
		want   string
		ok     bool
	}{
		{"none", nil, "", false},
		{"one", []string{"Bearer abc"}, "abc", true},
		{"in lower case", []string{"bearer abc"}, "abc", true},
		{"empty", []string{"Bearer "}, "", false},
		{"another scheme", []string{"Basic abc=="}, "", false},
		{"two", []string{"Bearer abc", "Bearer def"}, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := dial.BearerToken(test.values); got != test.want || ok != test.ok {
				t.Errorf("got %q, %v; want %q, %v", got, ok, test.want, test.ok)
			}
		})
	}
}
