package main

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// readers are an emulated bucket as people see it who may read it and not write:
// what would change something is refused as Cloud Storage refuses it.
func (e *emulator) readers(t *testing.T) []string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":{"code":403,"message":"reader does not have storage.objects.create access","errors":[{"reason":"forbidden"}]}}`))
			return
		}
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return []string{"STORAGE_EMULATOR_HOST=" + strings.TrimPrefix(s.URL, "http://")}
}

// readerStack is a stack in a bucket, led by a watch, whose job has a secret.
func readerStack(t *testing.T) (*clusterProof, []string) {
	t.Helper()
	bucket := newEmulator(t)
	p := newClusterProof(t, bucket, "", 1)
	p.watch(t)
	p.awaitLeader(t, 0)
	return p, bucket.readers(t)
}

// TestReaderRunsNothing: who may only read the bucket, and with it the stack's
// key, can neither run commands on hosts nor have the controller do anything.
func TestReaderRunsNothing(t *testing.T) {
	t.Parallel()
	p, reader := readerStack(t)
	if got := p.must(t, "exec", "job.parent", "--", "echo", "in"); got.stdout != "in\n" {
		t.Fatalf("exec of a writer: %v", got)
	}
	for _, args := range [][]string{
		{"exec", "job.parent", "--", "echo", "ran"},
		{"run", "--", "sh", "-c", "echo ran"},
		{"stop", "job.parent"},
		{"apply", "--auto-approve", "--replace=job.parent"},
		{"pause", "--reason", "x"},
	} {
		t.Run(args[0], func(t *testing.T) {
			got, err := p.run(t, reader, args...)
			if err != nil {
				t.Fatal(err)
			}
			if got.code == 0 || strings.Contains(got.stdout, "ran") {
				t.Errorf("a reader's fray %s: %v; want it refused", strings.Join(args, " "), got)
			}
			if !strings.Contains(got.stderr, "may not write to the stack's store") && !strings.Contains(got.stderr, "the permission storage.objects.create") {
				t.Errorf("a reader's fray %s says %q; want it to say that the right to write is missing", args[0], got.stderr)
			}
		})
	}
	for _, args := range [][]string{{"status"}, {"logs", "job.parent"}, {"actor", "list"}} {
		if got, err := p.run(t, reader, args...); err != nil || got.code != 0 {
			t.Errorf("a reader's fray %s: %v, %v; want it to work", args[0], got, err)
		}
	}
}

// TestReaderForgesNothing: nothing in the store is a token, or enough to make one.
func TestReaderForgesNothing(t *testing.T) {
	t.Parallel()
	p, _ := readerStack(t)
	p.forge(t)
}

// forge tries every token that can be made of what a reader of the stack's store
// sees: at the controller and at the host.
func (p *clusterProof) forge(t *testing.T) {
	t.Helper()
	r := p.read(t)
	for _, forged := range r.forgeries(t) {
		made := jwt.NewWithClaims(forged.method, forged.claims)
		made.Header["kid"] = forged.kid
		text, err := made.SignedString(forged.key)
		if err != nil {
			t.Fatal(err)
		}
		r.wantRejected(t, forged.name, func(context.Context) (string, error) { return text, nil })
	}
}

// readings are what a reader of the bucket finds there.
type readings struct {
	secret []byte // of the stack's keyring
	doc    *state.Document
	job    *state.Job
	task   state.Task
	lease  store.Lease
	report state.HostReport
}

// read reads the whole bucket; no token may be in it.
func (p *clusterProof) read(t *testing.T) *readings {
	t.Helper()
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string][]byte{}
	objects, err := st.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		object, err := st.Get(t.Context(), o.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		read[o.Key] = object.Data
		if strings.Contains(string(object.Data), "eyJhbGciOi") {
			t.Errorf("%s has a token", o.Key)
		}
	}
	ring, err := keyring.Parse(read[keyring.ObjectKey])
	if err != nil {
		t.Fatal(err)
	}
	r := &readings{doc: p.document(t)}
	if r.secret, err = ring.Open(t.Context(), keyring.Unlock{}); err != nil {
		t.Fatal(err)
	}
	r.job = r.doc.Jobs[schema.Address{Kind: schema.KindJob, Name: "parent"}]
	r.task = r.job.Last().Tasks[0]
	err = errors.Join(json.Unmarshal(read[store.LeaseKey], &r.lease), json.Unmarshal(read[store.HostKey(r.task.Slice, r.task.Host)], &r.report))
	if err != nil || r.lease.SigningKey == nil || r.report.SigningKey == nil {
		t.Fatalf("lease %+v, report %+v, %v: want their public keys", r.lease, r.report, err)
	}
	return r
}

// forgery is a token that is not signed by whom it names.
type forgery struct {
	name   string
	method jwt.SigningMethod
	key    any
	kid    string
	claims jwt.MapClaims
}

func (r *readings) forgeries(t *testing.T) []forgery {
	t.Helper()
	// As former versions of fray did.
	root, err := hkdf.Key(sha256.New, r.secret, nil, "fray derive v1", state.KeySize)
	if err != nil {
		t.Fatal(err)
	}
	former, err := hkdf.Expand(sha256.New, root, "cluster api tokens v1", state.KeySize)
	if err != nil {
		t.Fatal(err)
	}
	_, mine, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	command := token.ID{Role: token.RoleCommand, Sum: token.Sum(mine.Public().(ed25519.PublicKey))}
	leader := token.ID{Role: token.RoleLeader, Sum: token.Sum(r.lease.SigningKey)}
	host := token.ID{Role: token.RoleHost, Slice: r.task.Slice, Host: r.task.Host, Sum: token.Sum(r.report.SigningKey)}
	end := r.lease.RenewedAt.Add(5 * time.Minute).Unix()
	asUser := jwt.MapClaims{"stack": r.doc.Stack(), "sub": "user", "user": "root", "exp": end}
	asController := jwt.MapClaims{"stack": r.doc.Stack(), "sub": "controller", "exp": end}
	asJob := jwt.MapClaims{"stack": r.doc.Stack(), "sub": "job", "ns": r.job.Spec.Namespace, "job": r.job.ID, "attempt": r.job.Attempt}
	return []forgery{
		{"the stack's key", jwt.SigningMethodHS256, former, "", asUser},
		{"the stack's key as the controller", jwt.SigningMethodHS256, former, "", asController},
		{"the stack's key as the job", jwt.SigningMethodHS256, former, "", asJob},
		{"the leader's public key as a MAC's", jwt.SigningMethodHS256, r.lease.SigningKey, leader.String(), asController},
		{"the host's public key as a MAC's", jwt.SigningMethodHS256, r.report.SigningKey, host.String(), asJob},
		{"a key of its own", jwt.SigningMethodEdDSA, mine, command.String(), asUser},
		{"a key of its own as the leader's", jwt.SigningMethodEdDSA, mine, leader.String(), asController},
		{"a key of its own as the host's", jwt.SigningMethodEdDSA, mine, host.String(), asJob},
		{"no key", jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, leader.String(), asController},
	}
}

// wantRejected wants the controller and the task's host to reject a token.
func (r *readings) wantRejected(t *testing.T, name string, bearer func(context.Context) (string, error)) {
	t.Helper()
	connected := grpc.WaitForReady(true) // on a busy machine a handshake may not end in its time
	controller, err := dial.Open(r.lease.ControllerAddress, r.lease.ControllerFingerprint, bearer)
	if err != nil {
		t.Fatal(err)
	}
	defer controller.Close()
	_, err = clusterapi.NewClusterClient(controller).ListJobs(t.Context(), &clusterapi.ListJobsRequest{}, connected)
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("signed with %s: the controller says %v, want it refused", name, err)
	}
	agent, err := dial.Open(r.report.API, r.report.Fingerprint, bearer)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	stream, err := clusterapi.NewHostClient(agent).Exec(t.Context(), connected)
	if err == nil {
		start := &clusterapi.ExecStart{JobId: r.job.ID, Command: []string{"id"}}
		_ = stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Start{Start: start}})
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("signed with %s: the host says %v, want it refused", name, err)
	}
}
