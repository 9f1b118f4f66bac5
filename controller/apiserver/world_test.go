package apiserver

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/caller"
)

// logbook keeps what was logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what was logged since the last time.
func (l *logbook) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// published are the keys that the tests' signers have published.
type published struct{ outpost *outpost }

func (p published) Key(_ context.Context, id token.ID) (token.Key, error) {
	for _, s := range p.outpost.signers {
		if s.ID() == id {
			key := token.Key{ID: id, Public: s.Public()}
			if id.Role == token.RoleCommand {
				key.User, key.Expires = "ann", time.Now().Add(token.CommandLife)
			}
			return key, nil
		}
	}
	return token.Key{}, token.ErrUnknownKey
}

// signer is what signs as a role, under a key that follows from a seed.
func signer(t testing.TB, seed, stack string, at token.ID) *token.Signer {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	s, err := token.NewSigner(ed25519.NewKeyFromSeed(sum[:]), stack, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// roleOf is whose key signs the tokens of a subject.
func roleOf(s token.Subject) token.ID {
	switch s {
	case token.SubjectUser:
		return token.ID{Role: token.RoleCommand}
	case token.SubjectController:
		return token.ID{Role: token.RoleLeader}
	case token.SubjectJob, token.SubjectHost, token.SubjectRelayed:
	}
	return token.ID{Role: token.RoleHost, Slice: accesstest.Slice}
}

// mint makes a token under a key that is published.
func (o *outpost) mint(t testing.TB, c token.Claims) string {
	t.Helper()
	text, err := signer(t, "k", "abc", roleOf(c.Subject)).Mint(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// echo serves what the tests call: Poll answers with the caller.
type echo struct {
	clusterapi.UnimplementedClusterServer
	clusterapi.UnimplementedMetadataServer
	clusterapi.UnimplementedAdminServer
	clusterapi.UnimplementedHostsServer
	entered chan struct{}
}

func (e *echo) Poll(ctx context.Context, r *clusterapi.PollRequest) (*clusterapi.JobInfo, error) {
	if r.GetJobId() == "panic" {
		panic("out of luck")
	}
	return &clusterapi.JobInfo{JobId: caller.Of(ctx).JobID, Namespace: caller.Of(ctx).Namespace, User: caller.Of(ctx).User}, nil
}

func (e *echo) ListJobs(context.Context, *clusterapi.ListJobsRequest) (*clusterapi.ListJobsResponse, error) {
	return &clusterapi.ListJobsResponse{}, nil
}

func (e *echo) Launch(context.Context, *clusterapi.LaunchRequest) (*clusterapi.LaunchResponse, error) {
	return &clusterapi.LaunchResponse{}, nil
}

func (e *echo) LaunchGroup(context.Context, *clusterapi.LaunchGroupRequest) (*clusterapi.LaunchGroupResponse, error) {
	return &clusterapi.LaunchGroupResponse{}, nil
}

func (e *echo) CreateReservation(context.Context, *clusterapi.CreateReservationRequest) (*clusterapi.ReservationInfo, error) {
	return &clusterapi.ReservationInfo{}, nil
}

// Wait hangs until its context ends.
func (e *echo) Wait(ctx context.Context, _ *clusterapi.WaitRequest) (*clusterapi.WaitResponse, error) {
	e.entered <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (e *echo) Register(context.Context, *clusterapi.RegisterRequest) (*clusterapi.RegisterResponse, error) {
	return &clusterapi.RegisterResponse{}, nil
}

func (e *echo) Watch(_ *clusterapi.WatchRequest, s grpc.ServerStreamingServer[clusterapi.WatchResponse]) error {
	if err := s.Send(&clusterapi.WatchResponse{}); err != nil {
		return err
	}
	<-s.Context().Done()
	return s.Context().Err()
}

// Connect answers each batch.
func (e *echo) Connect(s clusterapi.Hosts_ConnectServer) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&clusterapi.ControllerMessages{}); err != nil {
			return err
		}
	}
}

func (e *echo) Pause(context.Context, *clusterapi.PauseRequest) (*clusterapi.PauseResponse, error) {
	return &clusterapi.PauseResponse{}, nil
}

// outpost is a server under test and what belongs to it.
type outpost struct {
	*Server
	board       *accesstest.Fixed
	log         *logbook
	signers     []*token.Signer
	fingerprint string
	echo        *echo
}

func newOutpost(t *testing.T) *outpost {
	t.Helper()
	o := &outpost{board: accesstest.NewFixed(), log: &logbook{}, echo: &echo{entered: make(chan struct{}, 10)}}
	for _, s := range []token.Subject{token.SubjectUser, token.SubjectController, token.SubjectJob} {
		o.signers = append(o.signers, signer(t, "k", "abc", roleOf(s)))
	}
	verifier, err := token.NewVerifier("abc", published{o})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := dial.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	o.fingerprint = dial.Fingerprint(certificate)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Server, err = Serve(t.Context(), Config{
		Listener: listener, Certificate: certificate, Tokens: verifier, Cluster: o.echo, Metadata: o.echo, Admin: o.echo, Hosts: o.echo,
		Leader: func() string { return "ann@elsewhere" }, Log: slog.New(slog.NewTextHandler(o.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Stop)
	return o
}

func jobClaims(namespace, name string, attempt int) token.Claims {
	return token.Claims{Subject: token.SubjectJob, Namespace: namespace, JobID: name + "-id", Attempt: attempt, User: "bob"}
}

func userClaims(life time.Duration) token.Claims {
	return token.Claims{Subject: token.SubjectUser, User: "ann", Expires: time.Now().Add(life)}
}

// with connects with a token as it is; "": none.
func (o *outpost) with(t testing.TB, text string) *grpc.ClientConn {
	t.Helper()
	var bearer dial.Token
	if text != "" {
		bearer = func(context.Context) (string, error) { return text, nil }
	}
	conn, err := dial.Open(o.Address(), o.fingerprint, bearer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (o *outpost) as(t testing.TB, c token.Claims) *grpc.ClientConn {
	t.Helper()
	return o.with(t, o.mint(t, c))
}

func callContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// wantRefused checks an answer's code and words, and that the log has it with
// who called what.
func (o *outpost) wantRefused(t *testing.T, err error, code codes.Code, words ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
	text := status.Convert(err).Message()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("got %q, want %q in it", text, w)
		}
	}
	wantLog(t, o.log, append([]string{"refused a call", "peer=127.0.0.1:", "method=/fray.cluster.v1.", "code=" + code.String(), "reason="}, words[:min(1, len(words))]...)...)
}

func poll(t *testing.T, conn *grpc.ClientConn) (*clusterapi.JobInfo, error) {
	t.Helper()
	return clusterapi.NewClusterClient(conn).Poll(callContext(t), &clusterapi.PollRequest{})
}

// wantLog waits until all words are logged, which may be a moment after the
// client knows.
func wantLog(t *testing.T, log *logbook, words ...string) {
	t.Helper()
	text := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		text += log.take()
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Errorf("the log says %q, want %q in it", text, words)
}
