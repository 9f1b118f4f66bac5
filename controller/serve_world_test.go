package controller

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
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
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// board is a desk whose views a test pins up.
type board struct {
	mu      sync.Mutex
	view    *access.View
	changed chan struct{}
}

var _ access.State = (*board)(nil)

func newBoard() *board { return &board{changed: make(chan struct{})} }

func (b *board) View() *access.View {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view
}

func (b *board) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *board) Do(context.Context, access.Change) error {
	return errors.New("a board takes no changes")
}

// show pins up a view of jobs under an epoch.
func (b *board) show(epoch uint64, jobs ...*state.Job) {
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{}}
	for _, j := range jobs {
		doc.Jobs[j.Spec.Addr] = j
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view = &access.View{Doc: doc, Lease: store.Lease{Epoch: epoch}}
	close(b.changed)
	b.changed = make(chan struct{})
}

// runningJob is one whose attempt of a number runs with two tasks.
func runningJob(namespace, name string, attempt int) *state.Job {
	addr := schema.LaunchedAddress(schema.KindJob, namespace, "", name)
	return &state.Job{
		ID: name + "-id", Spec: &schema.Job{Addr: addr, Namespace: namespace, User: "bob"}, Status: schema.JobRunning, Attempt: attempt,
		Attempts: []state.Attempt{{Number: attempt, Tasks: []state.Task{{Slice: testSlice, State: schema.TaskRunning}, {Slice: testSlice, Host: 1, State: schema.TaskRunning}}}},
	}
}

// endedJob is the same after its attempt.
func endedJob(namespace, name string, attempt int) *state.Job {
	j := runningJob(namespace, name, attempt)
	j.Status, j.Reason, j.Attempts[0].Outcome = schema.JobFailed, "exit 1", schema.TaskFailed
	return j
}

// testLease is a lease that a test ends.
type testLease struct {
	ctx   context.Context
	epoch uint64
	mu    sync.Mutex
	err   error
}

func newTestLease(t *testing.T, epoch uint64) (*testLease, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	return &testLease{ctx: ctx, epoch: epoch}, cancel
}

func (l *testLease) Context() context.Context { return l.ctx }

func (l *testLease) Epoch() uint64 { return l.epoch }

func (l *testLease) Valid() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *testLease) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = store.ErrLeaseLost
}

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
	case token.SubjectJob, token.SubjectHost:
	}
	return token.ID{Role: token.RoleHost, Slice: testSlice}
}

// testSlice is where the jobs of the tests run.
const testSlice = "s"

// mint makes a token under a key that is published.
func (o *outpost) mint(t testing.TB, c token.Claims) string {
	t.Helper()
	text, err := signer(t, "k", "abc", roleOf(c.Subject)).Mint(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// echo serves what the tests call: whoever calls gets a list of its namespace.
type echo struct {
	clusterapi.UnimplementedClusterServer
	clusterapi.UnimplementedMetadataServer
	clusterapi.UnimplementedAdminServer
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

func (e *echo) Pause(context.Context, *clusterapi.PauseRequest) (*clusterapi.PauseResponse, error) {
	return &clusterapi.PauseResponse{}, nil
}

// outpost is a server under test and what belongs to it.
type outpost struct {
	*server
	board       *board
	log         *logbook
	signers     []*token.Signer
	fingerprint string
	echo        *echo
}

func newOutpost(t *testing.T) *outpost {
	t.Helper()
	o := &outpost{board: newBoard(), log: &logbook{}, echo: &echo{entered: make(chan struct{}, 10)}}
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
	o.server, err = serve(t.Context(), serveConfig{
		Listener: listener, Certificate: certificate, Tokens: verifier, Cluster: o.echo, Metadata: o.echo, Admin: o.echo,
		Leader: func() string { return "ann@elsewhere" }, Log: slog.New(slog.NewTextHandler(o.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.stop)
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
	conn, err := dial.Open(o.address(), o.fingerprint, bearer)
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
