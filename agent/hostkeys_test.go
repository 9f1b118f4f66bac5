package agent

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// verified is what a token says to who reads the stack's store.
func (r *rig) verified(text string) (token.Claims, error) {
	r.t.Helper()
	v, err := token.NewVerifier(testStack, keys.NewReader(r.store, nil))
	if err != nil {
		r.t.Fatal(err)
	}
	return v.Verify(r.t.Context(), text, time.Now())
}

// wantTokenOfTheHost checks that a task's token is one that its host has signed.
func (r *rig) wantTokenOfTheHost(text string) {
	r.t.Helper()
	got, err := r.verified(text)
	want := token.Claims{
		Stack: testStack, Subject: token.SubjectJob, Namespace: "default", JobID: "id-1", Attempt: int(r.generation),
		Signer: token.ID{Role: token.RoleHost, Slice: "s", Sum: got.Signer.Sum},
	}
	if err != nil || got != want {
		r.t.Errorf("the task's token says %+v, %v; want %+v", got, err, want)
	}
}

// TestTokensOutliveTheAgent: a task's token holds after a restart of its agent, whose
// key is the same, and a command beside the task has the same token.
func TestTokensOutliveTheAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stack = testStack
	print := job(`echo "$FRAY_CLUSTER_TOKEN" > token; exec sleep 1000`)
	r.awaitTask(r.assign(&print), schema.TaskRunning)
	var text string
	eventually(t, "the task's token", func() bool {
		data, err := os.ReadFile(filepath.Join(r.work, "token"))
		text = strings.TrimSpace(string(data))
		return err == nil && text != ""
	}, func() string { return text })
	r.wantTokenOfTheHost(text)
	before, _ := r.report()
	r.killAgent()
	r.startAgent()
	r.await("another agent", func(h state.HostReport) bool { return h.Boot != before.Boot })
	r.wantTokenOfTheHost(text)
	beside, err := execute(t.Context(), r.hostClient(minted(t, userClaims())), sh(`echo "$FRAY_CLUSTER_TOKEN"`), "")
	if err != nil || beside.stdout != text+"\n" {
		t.Errorf("a command beside the task finds %+v, %v; want the task's token", beside, err)
	}
}

// TestPrivateKeysStayOnTheHost: nothing of them is in the store, and only the
// agent's user may read them.
func TestPrivateKeysStayOnTheHost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stack = testStack
	sleeper := job("exec sleep 1000")
	r.awaitTask(r.assign(&sleeper), schema.TaskRunning)
	file := filepath.Join(r.dir, hostdir.KeysFile)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the host's keys: %v, %v; want a file that only its owner may read", info, err)
	}
	k, err := (&hostdir.Dir{Path: r.dir}).Keys()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := r.store.List(t.Context(), "")
	if err != nil || len(objects) < 3 {
		t.Fatalf("the store has %v, %v", objects, err)
	}
	for _, secret := range keySecrets(k) {
		for _, o := range objects {
			object, err := r.store.Get(t.Context(), o.Key)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(object.Data), secret) {
				t.Errorf("%s has a private key of the host", o.Key)
			}
		}
	}
}

// keySecrets are the private keys as JSON has them.
func keySecrets(k *hostdir.Keys) []string {
	return []string{base64.StdEncoding.EncodeToString(k.Signing)}
}
