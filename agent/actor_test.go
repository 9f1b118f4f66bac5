package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// wantIdentity checks that a task found a file by which it is one of a namespace, as
// the leader has it certified.
func (r *rig) wantIdentity(text, namespace string) {
	r.t.Helper()
	if err := r.identityError(text, namespace); err != nil {
		r.t.Error(err)
	}
}

// identityError says what is wrong with the identity that a task finds.
func (r *rig) identityError(text, namespace string) error {
	r.t.Helper()
	key, der, err := identity.ParseFile([]byte(text))
	if err != nil {
		return fmt.Errorf("the task finds %q: %w", text, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	trusted, _, err := keys.ReadAuthorities(r.t.Context(), r.store)
	if err != nil {
		r.t.Fatal(err)
	}
	if text != string(identity.File(key, der, keys.Trusted(trusted))) || len(trusted) == 0 || !identity.IssuedBy(der, trusted[0].Certificate) ||
		leaf.URIs[0].String() != "fray://"+testStack+"/"+namespace {
		return fmt.Errorf("the task finds %q, want what an authority has certified for %s, and all %d authorities", text, namespace, len(trusted))
	}
	if _, err := tls.X509KeyPair([]byte(text), []byte(text)); err != nil {
		return fmt.Errorf("the key and the certificate in the file do not belong together: %w", err)
	}
	return nil
}

func (r *rig) wantNoIdentity() {
	r.t.Helper()
	if left, err := filepath.Glob(filepath.Join(r.dir, hostdir.TasksDir, "*", hostdir.IdentityFile)); err != nil || left != nil {
		r.t.Errorf("identities are left in %v, %v", left, err)
	}
}

func TestTaskHasTheIdentityOfItsNamespace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stack = testStack
	spec := job(`cat "$FRAY_ACTOR_IDENTITY"; ls -l "$FRAY_ACTOR_IDENTITY" | cut -c 1-10`)
	spec.Namespace = "rl"
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	text, private := strings.CutSuffix(r.output(), "-rw-------\n")
	if !private {
		t.Errorf("the task finds %q, want a file that its user alone reads", text)
	}
	r.wantIdentity(text, "rl")
	r.wantNoIdentity()

	// What an agent left that died in between goes when the next task starts.
	abandoned := filepath.Join(r.dir, hostdir.TasksDir, "abandoned")
	if err := os.MkdirAll(filepath.Join(abandoned, hostdir.IdentityDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(abandoned, hostdir.IdentityFile), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A task that is killed leaves none either, nor one whose agent was.
	sleeper := job(`echo up; exec sleep 1000`)
	gen := r.assign(&sleeper)
	r.awaitTask(gen, schema.TaskRunning)
	if _, err := os.Stat(filepath.Join(abandoned, hostdir.IdentityFile)); err == nil {
		t.Error("an abandoned identity is kept")
	}
	beside, err := execute(t.Context(), r.hostClient(minted(t, userClaims())), sh(`cat "$FRAY_ACTOR_IDENTITY"`), "")
	if err != nil {
		t.Errorf("a command beside the task: %v", err)
	}
	r.wantIdentity(beside.stdout, "default")
	r.killAgent()
	r.startAgent()
	r.assign(nil)
	r.await("the task's end", func(h state.HostReport) bool {
		return h.Task != nil && h.Task.Generation == gen && h.Task.State == schema.TaskKilled
	})
	r.wantNoIdentity()
}

// TestAuthoritiesReachTasksThatRun: the file of a task has a new leader's authority a
// moment after that is published, also where another agent has taken the task over,
// and another certificate when the host gets one.
func TestAuthoritiesReachTasksThatRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stack = testStack
	sleeper := job(`echo "$FRAY_ACTOR_IDENTITY" > where; exec sleep 1000`)
	r.awaitTask(r.assign(&sleeper), schema.TaskRunning)
	var file string
	eventually(t, "the file's name", func() bool {
		data, err := os.ReadFile(filepath.Join(r.work, "where"))
		file = strings.TrimSpace(string(data))
		return err == nil && file != ""
	}, func() string { return file })
	authorities := func(want int) {
		t.Helper()
		var text string
		eventually(t, "the authorities", func() bool {
			data, err := os.ReadFile(file)
			text = string(data)
			// Authorities and certificate change one after the other.
			return err == nil && strings.Count(text, "BEGIN CERTIFICATE") == 1+want && r.identityError(text, "default") == nil
		}, func() string { return fmt.Sprint(r.identityError(text, "default")) })
	}
	authorities(1)
	add := func() {
		t.Helper()
		if _, err := keys.Join(t.Context(), r.store, testStack, "ann", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	add()
	authorities(2)
	r.killAgent()
	r.startAgent()
	add()
	authorities(3)

	// All authorities are replaced, and the assignment that stands has the new one's
	// certificate: nothing restarts.
	before, _ := r.report()
	if err := keys.EditAuthorities(t.Context(), r.store, func([]keys.Authority) []keys.Authority { return nil }); err != nil {
		t.Fatal(err)
	}
	r.issuer = nil
	r.reassign()
	authorities(1)
	if after, _ := r.report(); after.Task.PID != before.Task.PID {
		t.Errorf("the task was process %d and is %d", before.Task.PID, after.Task.PID)
	}
}

// TestNoStackNoIdentity: who does not know its stack proves nothing.
func TestNoStackNoIdentity(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`echo "[$FRAY_ACTOR_IDENTITY]"`)
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if got := r.output(); got != "[]\n" {
		t.Errorf("the task says %q, want that it has no identity", got)
	}
}

func TestContainerHasTheIdentity(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		r.stack = testStack
		spec := r.job(`cat "$FRAY_ACTOR_IDENTITY"`)
		r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
		r.wantIdentity(r.output(), "default")
		r.wantNoIdentity()
	})
}

// TestConstructorFails: the report of an actor that could not be made says so,
// and what its constructor said; secrets are no part of that.
func TestConstructorFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job(`echo Traceback; echo "ValueError: no weights at $WHERE"; exit 77`)
	spec.Environment.Env = map[string]schema.Text{
		schema.ActorClassVariable: schema.Plain("m:C"), "WHERE": sealed(t, "hunter22"),
	}
	end := r.awaitTask(r.assign(&spec), schema.TaskFailed)
	if strings.Contains(end.Reason, "hunter22") || !strings.HasPrefix(end.Reason, "the actor could not be constructed: ValueError: no weights at ") {
		t.Errorf("the reason is %q", end.Reason)
	}
	if len(end.Tail) != 2 || end.Tail[0] != "Traceback" || end.ExitCode == nil || *end.ExitCode != 77 {
		t.Errorf("got the last lines %q and exit status %v", end.Tail, end.ExitCode)
	}
}

// TestTerminationIsRecorded: what a program of fray's own records about its end is
// in the report as it was recorded, without secrets; what is no such record counts
// as none.
func TestTerminationIsRecorded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script string
		want         *schema.Termination
	}{
		{"a record", `echo "{\"cause\": \"actor_unmade\", \"type\": \"ValueError\", \"message\": \"no $SECRET\", \"trace\": \"at $SECRET\"}"`,
			&schema.Termination{Cause: schema.TerminationActorUnmade, Type: "ValueError", Message: "no (sensitive value)", Trace: "at (sensitive value)"}},
		{"another cause", `echo '{"cause": "boredom", "message": "x"}'`, nil},
		{"no JSON", `echo '{'`, nil},
		{"too long a record", `head -c 100000 /dev/zero | tr '\0' ' '; echo '{"cause": "actor_unmade", "message": "x"}'`, nil},
		{"a pipe", "", nil},
		{"nothing", ":", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			script := "{ " + test.script + `; } > "$FRAY_TERMINATION_FILE"; exit 1`
			switch test.name {
			case "a pipe":
				script = `mkfifo "$FRAY_TERMINATION_FILE"; exit 1`
			case "nothing":
				script = "exit 1"
			}
			spec := job(script)
			spec.Environment.Env = map[string]schema.Text{"SECRET": sealed(t, "hunter22")}
			end := r.awaitTask(r.assign(&spec), schema.TaskFailed)
			if !reflect.DeepEqual(end.Termination, test.want) {
				t.Errorf("got %+v, want %+v", end.Termination, test.want)
			}
		})
	}
}

func (r *rig) putLease(l store.Lease) {
	r.t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.store.Put(r.t.Context(), store.LeaseKey, data, store.Any); err != nil {
		r.t.Fatal(err)
	}
}

// TestCallsThatDoNotWait: a program that registers an actor learns at once that no
// controller leads, by a text for people and a reason for programs.
func TestCallsThatDoNotWait(t *testing.T) {
	t.Parallel()
	ctx, conn, controller, r := proxied(t)
	cluster := clusterapi.NewClusterClient(conn)
	patient := ctx
	ctx = metadata.AppendToOutgoingContext(ctx, clusterapi.NoWaitHeader, "1")
	poll := func(ctx context.Context) (reason []string, err error) {
		var trailer metadata.MD
		_, err = cluster.Poll(ctx, &clusterapi.PollRequest{JobId: "j"}, grpc.Trailer(&trailer))
		return trailer.Get(clusterapi.ReasonTrailer), err
	}
	if reason, err := poll(ctx); err != nil || reason != nil {
		t.Fatalf("with a controller the call says %v, %q", err, reason)
	}
	controller.server.Stop()
	now := time.Now()
	held := store.Lease{
		Holder: "h", Epoch: 2, User: "ada", Host: "here", PID: 1, Command: "fray apply",
		AcquiredAt: now, RenewedAt: now, ExpiresAt: now.Add(time.Hour), Nonce: "n",
	}
	free := held
	free.Released = true
	for name, lease := range map[string]store.Lease{"fray apply": held, "the lease is free": free} {
		r.putLease(lease)
		reason, err := poll(ctx) // the first goes to the one that has gone
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), name) || !slices.Equal(reason, []string{clusterapi.ReasonNoController}) {
			t.Errorf("%s: got %v, %q", name, err, reason)
		}
	}
	next := newFakeController(t, "next")
	answered := make(chan error, 1)
	go func() {
		_, err := poll(patient)
		answered <- err
	}()
	r.leads(next)
	if err := <-answered; err != nil {
		t.Errorf("a call that waits says %v, want an answer of the next controller", err)
	}
}
