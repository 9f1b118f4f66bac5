package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

// uploaded is what the machine states in the bucket, "" where there is nothing.
func (r *bootRig) uploaded(machine string) string {
	r.t.Helper()
	object, err := r.store.Get(r.t.Context(), store.BootKey("s-1", machine))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		r.t.Fatal(err)
	}
	return string(object.Data)
}

// bootWith boots by one of the programs that make requests.
func (r *bootRig) bootWith(program string, env ...string) (string, error) {
	return r.boot(append(env, "PATH="+toolbox(r.t, append(usualTools(), program)...))...)
}

// TestStartupScriptUploadsItsStatus: the bucket has it while the program is fetched, after
// failures, and under the number of the host where the machine has one.
func TestStartupScriptUploadsItsStatus(t *testing.T) {
	for _, test := range []struct {
		name, attribute, text, machine, with string
	}{
		{"machine of a group", "other", "", "vm-7", "curl"},
		{"machine of a group", "other", "", "vm-7", "python3"},
		{"worker of a node", "agent-worker-number", "3", "3", "curl"},
		{"worker by its environment", "tpu-env", "NODE_ID: 's-1'\nWORKER_ID: '2'\nZONE: 'z'", "2", "curl"},
	} {
		t.Run(test.name+" with "+test.with, func(t *testing.T) {
			t.Parallel()
			r := newBootRig(t)
			r.meta.SetAttribute(test.attribute, test.text)
			fetching := ""
			missing := clienttest.Answer(404, "")
			missing.Then = func() { fetching = r.uploaded(test.machine) }
			r.wire.Inject(buckettest.ReqGet, missing)
			output, err := r.bootWith(test.with, "FRAY_BOOT_TRIES=1")
			if err == nil || !strings.HasPrefix(fetching, "fetching: gs://acme/rl/math/bundles/") {
				t.Errorf("while it fetched: %q, %v\n%s", fetching, err, output)
			}
			if got := r.uploaded(test.machine); !strings.HasPrefix(got, "failed: gs://acme/rl/math/bundles/") || !strings.Contains(got, "is not there") {
				t.Errorf("after the failure: %q", got)
			}
			if output, err = r.bootWith(test.with); err != nil || r.uploaded(test.machine) != "running" {
				t.Errorf("at the end: %q, %v\n%s", r.uploaded(test.machine), err, output)
			}
		})
	}
}

// TestStartupScriptGoesOnWithoutItsUpload: a machine that cannot write to the bucket, or
// gets no answer there, starts all the same, and its guest attribute states what happens.
func TestStartupScriptGoesOnWithoutItsUpload(t *testing.T) {
	for _, test := range []struct {
		name, with string
		fault      clienttest.Fault
	}{
		{"no rights", "curl", clienttest.Answer(403, "denied")},
		{"cut off", "python3", clienttest.Fault{}},
		{"no answer", "curl", clienttest.Fault{Stall: true}},
		{"no answer either", "python3", clienttest.Fault{Stall: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newBootRig(t)
			r.wire.Always(func(kind buckettest.Request) (clienttest.Fault, bool) { return test.fault, kind == buckettest.ReqPut })
			output, err := r.bootWith(test.with, "FRAY_BOOT_LIMIT=1")
			if err != nil {
				t.Errorf("startup script: %v\n%s", err, output)
			}
			r.wantStatus("running", output)
			if got := r.uploaded("vm-7"); got != "" {
				t.Errorf("the bucket has %q", got)
			}
			// Once while it fetches, and once after: what failed is no reason to wait.
			if n := r.wire.Count()[buckettest.ReqPut]; n > 2 {
				t.Errorf("tried %d times to write, want at most 2:\n%s", n, output)
			}
		})
	}
}

// TestStartupScriptUploadsLater: a failure whose upload was lost is uploaded with the next try.
func TestStartupScriptUploadsLater(t *testing.T) {
	r := newBootRig(t)
	missing := clienttest.Answer(404, "")
	r.wire.Inject(buckettest.ReqGet, missing, missing, missing)
	busy := clienttest.Answer(503, "busy")
	r.wire.Inject(buckettest.ReqPut, busy, busy)
	if output, err := r.boot("FRAY_BOOT_TRIES=3"); err == nil || !strings.Contains(r.uploaded("vm-7"), "given up after 3 tries") {
		t.Errorf("the bucket has %q, %v\n%s", r.uploaded("vm-7"), err, output)
	}
	r.wire.Left(t)
}

// TestStartupScriptIsSilentAtAReboot: where the agent may run already and has removed the
// status, nothing is uploaded.
func TestStartupScriptIsSilentAtAReboot(t *testing.T) {
	r := newBootRig(t)
	r.mustBoot()
	if err := r.store.Delete(t.Context(), store.BootKey("s-1", "vm-7")); err != nil {
		t.Fatal(err)
	}
	r.wire.Count()
	r.mustBoot()
	if n := r.wire.Count()[buckettest.ReqPut]; n != 0 || r.uploaded("vm-7") != "" {
		t.Errorf("wrote %d times, and the bucket has %q", n, r.uploaded("vm-7"))
	}
}
