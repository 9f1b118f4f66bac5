package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

func sumHex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// keep puts a blob into the store under a name, which need not be its own.
func (r *rig) keep(sum string, data []byte) {
	r.t.Helper()
	if _, err := r.store.Put(r.t.Context(), store.BundleKey(sum), data, store.Any); err != nil {
		r.t.Fatal(err)
	}
}

func TestCallable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	data := []byte("a pickle\n")
	sum := sumHex(data)
	r.keep(sum, data)
	spec := job(`cat "$FRAY_CALLABLE"`)
	spec.Environment.Callable = sum
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if got := r.output(); got != string(data) {
		t.Errorf("the task reads %q, want %q", got, data)
	}
	// It stays on the host: the next task needs no store for it, unless it is damaged.
	if err := r.store.Delete(t.Context(), store.BundleKey(sum)); err != nil {
		t.Fatal(err)
	}
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if err := os.WriteFile(filepath.Join(r.dir, hostdir.CallablesDir, sum), []byte("a pick"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.keep(sum, data)
	r.awaitTask(r.assign(&spec), schema.TaskSucceeded)
	if got := r.output(); got != string(data) {
		t.Errorf("after damage the task reads %q, want %q", got, data)
	}
}

func TestCallableThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	wrong := sumHex([]byte("right"))
	r.keep(wrong, []byte("wrong"))
	for _, test := range []struct {
		name, sum string
		reason    []string
	}{
		{"not in the store", sumHex([]byte("absent")), []string{"prepare callable " + sumHex([]byte("absent"))[:12], "not in the store", "launch the job again"}},
		{"does not match", wrong, []string{"damaged", "its SHA-256 is " + sumHex([]byte("wrong")), "delete it and launch the job again"}},
		{"no hash", "../../etc/passwd", []string{`"../../etc/passwd" is not a SHA-256`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r.t = t
			spec := job("echo x >> starts")
			spec.Environment.Callable = test.sum
			task := r.awaitTask(r.assign(&spec), schema.TaskWorkerFailed)
			for _, part := range test.reason {
				if !strings.Contains(task.Reason, part) {
					t.Errorf("reason is %q, want it to contain %q", task.Reason, part)
				}
			}
			if task.Started || r.starts() != 0 {
				t.Errorf("it was started: %+v", task)
			}
			left, err := filepath.Glob(filepath.Join(r.dir, hostdir.CallablesDir, "*"))
			if err != nil || len(left) != 0 {
				t.Errorf("the host keeps %q, %v", left, err)
			}
		})
	}
	r.t = t
}
