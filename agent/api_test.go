package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

const testStack = "test-stack"

// testSigner is what the tests sign with as a role.
func testSigner(t *testing.T, stack string, role token.Role) *token.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte(role))
	signer, err := token.NewSigner(ed25519.NewKeyFromSeed(seed[:]), stack, token.ID{Role: role, Slice: map[bool]string{true: "s"}[role == token.RoleHost]})
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// minted is a token of the tests' stack, by a key that may sign it.
func minted(t *testing.T, c token.Claims) string {
	t.Helper()
	role := map[token.Subject]token.Role{
		token.SubjectUser: token.RoleCommand, token.SubjectController: token.RoleLeader,
		token.SubjectJob: token.RoleHost, token.SubjectHost: token.RoleHost,
	}[c.Subject]
	text, err := testSigner(t, testStack, role).Mint(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// publishKeys puts the keys of the tests' signers where hosts look for them, as of a
// time by the leader's clock.
func publishKeys(t *testing.T, s store.Store, now time.Time) {
	t.Helper()
	put := func(key string, object any) {
		data, err := json.Marshal(object)
		if err == nil {
			_, err = s.Put(t.Context(), key, data, store.Any)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command := testSigner(t, testStack, token.RoleCommand)
	put(keys.CommandKey(command.ID().Sum), map[string]any{"key": command.Public(), "user": "ada", "expires": now.Add(token.CommandLife)})
	leader := testSigner(t, testStack, token.RoleLeader)
	put(store.LeaseKey, store.Lease{Holder: "h", Epoch: 1, SigningKey: leader.Public(), RenewedAt: now, ExpiresAt: now.Add(time.Hour)})
}

// userClaims outlive any wait for a turn on a busy machine.
func userClaims() token.Claims {
	return token.Claims{Subject: token.SubjectUser, User: "ada", Expires: time.Now().Add(token.UserLife)}
}

func fixed(text string) dial.Token {
	return func(context.Context) (string, error) { return text, nil }
}

// hostClient calls the API that a host reports.
func (r *rig) hostClient(text string) clusterapi.HostClient {
	r.t.Helper()
	h := r.await("an API", func(h state.HostReport) bool { return h.API != "" })
	conn, err := dial.Open(h.API, h.Fingerprint, fixed(text))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return clusterapi.NewHostClient(conn)
}

// runs assigns a job of the tests' stack and waits until its task runs.
func (r *rig) runs(spec schema.Job) state.TaskReport {
	r.t.Helper()
	r.stack = testStack
	return r.awaitTask(r.assign(&spec), schema.TaskRunning)
}

// said is what a command has said.
type said struct {
	stdout, stderr string
	code           int32
}

// execute runs a command beside the task, with an input and no terminal.
func execute(ctx context.Context, client clusterapi.HostClient, start *clusterapi.ExecStart, input string) (said, error) {
	stream, err := begin(ctx, client, start)
	if err != nil {
		return said{}, err
	}
	if input != "" {
		err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: []byte(input)}})
		if err != nil && !errors.Is(err, io.EOF) { // that one is the end of a command that reads nothing
			return said{}, err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return said{}, err
	}
	return hear(stream, func(said) bool { return false })
}

type execClient = grpc.BidiStreamingClient[clusterapi.ExecRequest, clusterapi.ExecResponse]

// begin opens a stream. One that was refused at once may take no first message any
// more, which says io.EOF: why, is told by Recv.
func begin(ctx context.Context, client clusterapi.HostClient, start *clusterapi.ExecStart) (execClient, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	stream, err := client.Exec(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(stream.Context(), cancel) // the stream has ended
	err = stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Start{Start: start}})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream, nil
}

// hear listens until the end, or until enough was said.
func hear(stream execClient, enough func(said) bool) (said, error) {
	var all said
	ended := false
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !ended {
				return all, errors.New("the stream ended without an exit code")
			}
			return all, nil
		}
		if err != nil {
			return all, err
		}
		switch kind := m.GetKind().(type) {
		case *clusterapi.ExecResponse_Stdout:
			all.stdout += string(kind.Stdout)
		case *clusterapi.ExecResponse_Stderr:
			all.stderr += string(kind.Stderr)
		case *clusterapi.ExecResponse_ExitCode:
			all.code, ended = kind.ExitCode, true
		}
		if enough(all) {
			return all, nil
		}
	}
}

func sh(script string) *clusterapi.ExecStart {
	return &clusterapi.ExecStart{JobId: "id-1", Command: []string{"/bin/sh", "-c", script}}
}

func TestHostIsServedToTheStacksOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	foreign, err := testSigner(t, "other-stack", token.RoleCommand).Mint(userClaims())
	if err != nil {
		t.Fatal(err)
	}
	publishKeys(t, r.store, time.Now())
	unpublished, err := token.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), testStack, token.ID{Role: token.RoleCommand})
	if err != nil {
		t.Fatal(err)
	}
	forged, err := unpublished.Mint(userClaims())
	if err != nil {
		t.Fatal(err)
	}
	late := userClaims()
	late.Expires = time.Now().Add(-time.Minute)
	controller := userClaims()
	controller.Subject = token.SubjectController
	for _, test := range []struct {
		name, token string
		code        codes.Code
		says        string
	}{
		{"user", minted(t, userClaims()), codes.OK, ""},
		{"controller", minted(t, controller), codes.OK, ""},
		{"expired", minted(t, late), codes.Unauthenticated, "expired"},
		{"job", minted(t, token.Claims{Subject: token.SubjectJob, Namespace: "default", JobID: "id-1", Attempt: 1}), codes.Unauthenticated, "is not published"},
		{"a key that was not published", forged, codes.Unauthenticated, "is not published"},
		{"other stack", foreign, codes.Unauthenticated, "another stack's"},
		{"garbage", "garbage", codes.Unauthenticated, "malformed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			got, err := execute(t.Context(), r.hostClient(test.token), sh("echo in"), "")
			if status.Code(err) != test.code || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("exec says %v, want %s with %q", err, test.code, test.says)
			}
			if ran := got.stdout == "in\n"; ran != (test.code == codes.OK) {
				t.Errorf("output is %q", got.stdout)
			}
			if test.code == codes.OK {
				return
			}
			logs, err := r.hostClient(test.token).Logs(t.Context(), &clusterapi.LogsRequest{JobId: "id-1", Attempt: 1})
			if err == nil {
				_, err = logs.Recv()
			}
			if status.Code(err) != test.code {
				t.Errorf("logs say %v, want %s", err, test.code)
			}
		})
	}
	r.t = t
}

func TestHostShowsItsCertificateOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	h, _ := r.report()
	conn, err := dial.Open(h.API, strings.Repeat("ab", 32), fixed(minted(t, userClaims())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = execute(t.Context(), clusterapi.NewHostClient(conn), sh("echo in"), "")
	if status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), "another process") {
		t.Errorf("exec says %v, want that the certificate is another's", err)
	}
}
