package hosts

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

func newHosts(t *testing.T) *Hosts {
	t.Helper()
	h, err := New(Config{Dir: t.TempDir(), Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// scripted is a machine that boots by a script.
func scripted(id, script string) cloud.Machine {
	return cloud.Machine{
		ID: id, Name: "n", Instance: id, Kind: cloud.KindNode, Zone: "us-west4-a", Project: "acme", Workers: 1,
		Addresses: []string{"10.128.0.2"}, AcceleratorType: "v5litepod-4",
		Metadata: map[string]string{"startup-script": "#!/bin/sh\n" + script, "enable-guest-attributes": "TRUE"},
	}
}

func eventually(t *testing.T, what string, ok func() bool, detail func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s; %s", what, detail())
		case <-tick.C:
		}
	}
}

// has reports whether a file of a machine's disk begins with a text.
func has(h *Hosts, id, name, text string) func() bool {
	return func() bool {
		data, err := os.ReadFile(filepath.Join(h.Disk(id), rootDir, name))
		return err == nil && strings.HasPrefix(string(data), text)
	}
}

func console(h *Hosts, id string) func() string {
	return func() string {
		data, _ := os.ReadFile(filepath.Join(h.Disk(id), consoleLog))
		return "the console: " + string(data)
	}
}

// wantNothingLeft looks for processes below a directory of machines.
func wantNothingLeft(t *testing.T, dir string) {
	t.Helper()
	all, err := process.List()
	if err != nil {
		t.Fatal(err)
	}
	if left := members(all, diskMark(dir)); len(left) > 0 {
		t.Errorf("processes %v are left of %s", left, dir)
	}
}

// TestStop: processes in other sessions, without their parents, without their
// environment and busy starting others are a machine's all the same.
func TestStop(t *testing.T) {
	h := newHosts(t)
	h.Start(scripted("vm", `
setsid sh -c 'trap "" HUP; (env -i sleep 1000 & echo $! >"$FRAY_ROOT/orphan"); sleep 1000' &
setsid sh -c 'env -i setsid sleep 1000 & echo $! >"$FRAY_ROOT/child"; wait' &
(setsid sh -c 'sleep 1000 & sleep 1000 & true' &)
setsid sh -c 'while :; do sleep 0.01; (setsid sleep 1000 &); done' &
trap "" TERM
echo 1 >"$FRAY_ROOT/up"
wait
`))
	eventually(t, "the script", has(h, "vm", "up", "1"), console(h, "vm"))
	// Found by their session, and by their parent; once those are gone, by nothing.
	var hidden []int
	for _, name := range []string{"orphan", "child"} {
		file := filepath.Join(h.Disk("vm"), rootDir, name)
		eventually(t, name, func() bool {
			data, _ := os.ReadFile(file)
			pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
			hidden = append(hidden, pid)
			return err == nil
		}, console(h, "vm"))
	}
	h.Stop("vm")
	all, err := process.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.PID > 1 && slices.Contains(hidden, p.PID) {
			t.Errorf("process %d is left", p.PID)
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	wantNothingLeft(t, h.config.Dir)
	h.Stop("vm") // is no error
	h.Stop("no such machine")
}

// TestReboot: the disk stays and the script runs again.
func TestReboot(t *testing.T) {
	h := newHosts(t)
	m := scripted("vm", `echo boot >>"$FRAY_ROOT/boots"; sleep 1000`)
	h.Start(m)
	h.Start(m) // is on already
	eventually(t, "the first boot", has(h, "vm", "boots", "boot\n"), console(h, "vm"))
	h.Stop("vm")
	h.Start(m)
	eventually(t, "the second boot", has(h, "vm", "boots", "boot\nboot\n"), console(h, "vm"))
	disk := h.Disk("vm")
	h.Remove("vm")
	if _, err := os.Stat(disk); !os.IsNotExist(err) {
		t.Errorf("the disk of a removed machine is there: %v", err)
	}
	wantNothingLeft(t, h.config.Dir)
	h.Start(m)
	eventually(t, "a new disk", has(h, "vm", "boots", "boot\n"), console(h, "vm"))
	h.Remove("vm")
}

// TestMetadata: what a machine is told is what its script finds.
func TestMetadata(t *testing.T) {
	h := newHosts(t)
	m := scripted("vm", `
get() { curl -sS -H 'Metadata-Flavor: Google' "http://$GCE_METADATA_HOST/computeMetadata/v1/$1"; echo; }
get instance/attributes/agent-worker-number
get instance/attributes/worker-network-endpoints
get instance/network-interfaces/0/ip
get instance/service-accounts/default/email
curl -sS -X PUT --data up -H 'Metadata-Flavor: Google' "http://$GCE_METADATA_HOST/computeMetadata/v1/instance/guest-attributes/fray/status"
get 'instance/preempted?wait_for_change=true&last_etag=0000000000000001'
get 'instance/maintenance-event?wait_for_change=true&last_etag=0000000000000001'
`)
	m.Worker, m.Workers, m.Addresses = 1, 2, []string{"10.128.0.2", "10.128.0.3"}
	h.Start(m)
	eventually(t, "a guest attribute", func() bool { return h.GuestAttributes("vm")["fray/status"] == "up" }, console(h, "vm"))
	h.Notice("vm", cloud.EventPreemption)
	want := "1\nunknown:unknown:127.128.0.2,unknown:unknown:127.128.0.3\n127.128.0.3\n1-compute@developer.gserviceaccount.com\nTRUE\n"
	read := func() string {
		data, _ := os.ReadFile(filepath.Join(h.Disk("vm"), consoleLog))
		return string(data)
	}
	eventually(t, "the preemption", func() bool { return read() == want }, console(h, "vm"))
	h.Notice("vm", cloud.EventMaintenance)
	want += "TERMINATE_ON_HOST_MAINTENANCE\n"
	eventually(t, "the maintenance", func() bool { return read() == want }, console(h, "vm"))
	h.Stop("vm")
	h.Notice("vm", cloud.EventPreemption) // an off machine hears nothing
	if got := h.GuestAttributes("vm"); got != nil {
		t.Errorf("a machine that is off says %v", got)
	}
}

func TestBadMachine(t *testing.T) {
	h := newHosts(t)
	m := scripted("vm", `echo "broken=$EMULATED_TPU_BROKEN" >"$FRAY_ROOT/said"`)
	m.Bad = true
	h.Start(m)
	eventually(t, "its variable", has(h, "vm", "said", "broken=1\n"), console(h, "vm"))
}

// TestNewEndsWhatWasLeft: by an emulator that died.
func TestNewEndsWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	left := exec.CommandContext(t.Context(), "setsid", "sleep", "1000")
	left.Env = append(os.Environ(), markVariable+"="+diskMark(filepath.Join(dir, "vm")))
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- left.Wait() }()
	h, err := New(Config{Dir: dir, Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("what was left ended by %v", err)
	}
	if _, err := New(Config{Dir: dir, Endpoint: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "another emulator's") {
		t.Errorf("a second emulator in the same directory: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			files = append(files, d.Name())
		}
		return nil
	})
	if len(files) != 1 || files[0] != ".lock" {
		t.Errorf("files %v", files)
	}
}

func TestLoopback(t *testing.T) {
	for in, want := range map[string]string{
		"10.128.0.2": "127.128.0.2", "10.0.1.2": "127.1.1.2", "127.5.6.7": "127.5.6.7", "::1": "127.0.0.1", "x": "127.0.0.1",
	} {
		if !ownLoopback {
			want = "127.0.0.1"
		}
		if got := loopback(in); got != want {
			t.Errorf("%s is at %s, want %s", in, got, want)
		}
	}
}
