package host

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/emulator/metadata"
	"github.com/fray-ml/fray/providers/gcp/host/startup"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// standIn is fray's program as far as the startup script knows it. As an agent
// it notes that it runs, and by whom.
const standIn = `#!/bin/sh
case $1 in
version) echo "fray 1" ;;
agent) echo "$PPID $$ $*" >>"$FRAY_ROOT/agents"; exec sleep 1000 ;;
esac
`

// bootRig is one machine: a disk, a metadata server, and a bucket with the program.
type bootRig struct {
	t    *testing.T
	wire *buckettest.Wire
	// store is the bucket with the program.
	store store.Store
	root  string
	sum   string // of the program in the bucket
	meta  *metadata.Server
	env   []string
}

const bootAccount = "trainer@acme.iam.gserviceaccount.com"

func newBootRig(t *testing.T) *bootRig { return bootRigWith(t, zipped(standIn), bootAccount) }

func zipped(program string) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(program)) // into memory: never fails
	_ = w.Close()
	return packed.Bytes()
}

func bootRigWith(t *testing.T, program []byte, account string) *bootRig {
	t.Helper()
	digest := sha256.Sum256(program)
	r := &bootRig{t: t, wire: buckettest.New(t), root: filepath.Join(t.TempDir(), "disk"), sum: hex.EncodeToString(digest[:])}
	config := bucket.Config{Bucket: "acme", Prefix: "rl/math", Endpoint: r.wire.URL + "/storage/v1/", HTTPClient: r.wire.Client(), WriteInterval: time.Nanosecond}
	bucket, err := bucket.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	r.store = bucket
	if err := bucket.Upload(t.Context(), store.BundleKey(r.sum), bytes.NewReader(program)); err != nil {
		t.Fatal(err)
	}
	r.wire.Count()
	boot := Bootstrap{Store: "gs://acme/rl/math", AgentSHA256: r.sum, AgentVersion: "1"}
	attributes, err := boot.Metadata(schema.SliceSpec{Name: "s-1", Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	r.meta = metadata.New(metadata.Facts{
		ID: 7, Name: "vm-7", Project: "acme", Zone: "us-west4-a", Address: "127.0.0.1", Account: account, Attributes: attributes,
	})
	server := httptest.NewServer(r.meta)
	t.Cleanup(server.Close)
	t.Cleanup(r.powerOff)
	r.env = append(os.Environ(), "FRAY_ROOT="+r.root, "FRAY_UNIT_DIR=", "FRAY_BOOT_TRIES=2", "FRAY_BOOT_PAUSE=0",
		"GCE_METADATA_HOST="+server.Listener.Addr().String(), "STORAGE_EMULATOR_HOST="+r.wire.URL)
	return r
}

// powerOff ends the loops that keep agents running, with their agents.
func (r *bootRig) powerOff() {
	r.eventually("the end of all processes", func() bool {
		var left []string
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, file := range files {
			command, err := os.ReadFile(file)
			if err == nil && bytes.Contains(command, []byte(r.root+"/run-agent")) {
				left = append(left, filepath.Base(filepath.Dir(file)))
			}
		}
		for _, each := range r.agents() {
			left = append(left, strings.Fields(each)[0])
		}
		gone := true
		for _, each := range left {
			pid, err := strconv.Atoi(each)
			if err != nil {
				r.t.Fatal(err)
			}
			err = syscall.Kill(-pid, syscall.SIGKILL)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				r.t.Error(err)
			}
			gone = gone && err != nil
		}
		return gone
	})
}

// agents are the lines that agents wrote when they started, as far as they are
// whole: a shell makes the file before it writes.
func (r *bootRig) agents() []string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.root, "agents"))
	if err != nil {
		return nil
	}
	whole := strings.Split(string(data), "\n")
	return whole[:len(whole)-1]
}

func (r *bootRig) command(env ...string) *exec.Cmd {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "startup-script")
	if err := os.WriteFile(file, []byte(startup.Script), 0o700); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), "/bin/sh", file)
	cmd.Env = append(append([]string(nil), r.env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// boot runs the script to its end and returns what it printed.
func (r *bootRig) boot(env ...string) (string, error) {
	r.t.Helper()
	output, err := r.command(env...).CombinedOutput()
	return string(output), err
}

// mustBoot also waits for an agent.
func (r *bootRig) mustBoot(env ...string) {
	r.t.Helper()
	output, err := r.boot(env...)
	if err != nil {
		r.t.Fatalf("startup script: %v\n%s", err, output)
	}
	r.wantStatus("running", output)
	r.eventually("an agent", func() bool { return len(r.agents()) > 0 })
}

// wantStatus looks where people do: at the file and at the guest attribute.
func (r *bootRig) wantStatus(want, output string) {
	r.t.Helper()
	status, err := os.ReadFile(filepath.Join(r.root, "status"))
	if err != nil || !strings.Contains(string(status), want) {
		r.t.Errorf("status is %q, %v; want %q\n%s", status, err, want, output)
	}
	if guestAttributes := r.meta.GuestAttributes()["fray/status"]; !strings.Contains(guestAttributes, want) {
		r.t.Errorf("guest attribute is %q, want %q", guestAttributes, want)
	}
}

func (r *bootRig) eventually(what string, ok func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			r.t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// leftovers are the files of downloads that were not completed.
func (r *bootRig) leftovers() []string {
	r.t.Helper()
	left, err := filepath.Glob(filepath.Join(r.root, "bin", ".new-*"))
	if err != nil {
		r.t.Fatal(err)
	}
	return left
}

// toolbox is a directory with the programs that the script needs, and no others.
func toolbox(t *testing.T, tools ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		if err == nil && tool == "python3" { // it may be a script that picks one
			path, err = interpreter()
		}
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, tool))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// interpreter is the Python that python3 starts.
var interpreter = sync.OnceValues(func() (string, error) {
	found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(found)), err
})

func usualTools() []string {
	return []string{
		"cat", "chmod", "cut", "date", "df", "flock", "gzip", "mkdir", "mv", "rm", "sed", "setsid", "sh",
		"sha256sum", "sleep", "sync", "tr", "uname",
	}
}
