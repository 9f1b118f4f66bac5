package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/terminal"
)

// mounted is a directory on a file system of its own, or a skip where this user
// may not mount.
func mounted(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting a small file system needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endProcesses(dir)
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// A full disk stops an apply with an error that names the file and says what
// to do; the state is what it was, and with space again the next apply goes on.
func TestFullDisk(t *testing.T) {
	dir := mounted(t, "size=512k")
	writeConfig(t, dir, sleeper)
	if _, stderr, code := frayIn(t, dir, "apply", "--auto-approve"); code != 0 {
		t.Fatalf("apply with space: exit %d\n%s", code, stderr)
	}
	statePath := filepath.Join(dir, ".fray", "state.json")
	before, err := os.ReadFile(statePath)
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	fill(t, filler)

	writeConfig(t, dir, strings.Replace(sleeper, "1000", "2000", 1))
	_, stderr, code := frayIn(t, dir, "apply", "--auto-approve", "--timeout=5s")
	if code == 0 || !strings.Contains(stderr, "no space left on device") || !strings.Contains(stderr, "free") {
		t.Errorf("apply on a full disk: exit %d, want an error that says to free space:\n%s", code, stderr)
	}
	after, err := os.ReadFile(statePath)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the state changed on a full disk (%v)", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := frayIn(t, dir, "apply", "--auto-approve"); code != 0 {
		t.Errorf("apply with space again: exit %d\n%s", code, stderr)
	}
	if stdout, stderr, code := frayIn(t, dir, "destroy", "--auto-approve"); code != 0 || !strings.Contains(stdout, "Destroy complete") {
		t.Errorf("destroy: exit %d\n%s%s", code, stdout, stderr)
	}
}

// fill writes a file until the disk is full, but for what its directory needs
// to keep the configuration writable.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte{1}, 4096)
	for {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	if err := f.Close(); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// fullDiskWorkload are jobs that end when they are told to, each otherwise. What they
// write and wait for is on another disk.
const fullDiskWorkload = `
fray {
  encryption {
    kms_key = "file://%[1]s/kms"
  }
}
job "ends" {
  for_each = { zero = "exit 0", three = "exit 3", killed = "kill -9 $$" }
  command  = ["sh", "-c", "echo $$ > %[1]s/${each.key}; while [ ! -e %[1]s/go ]; do sleep 0.02; done; echo said; ${each.value}"]
  environment {
    env = { WORD = sensitive("a word") }
  }
}
`

// A task that ends while the disk of its host and of its encrypted state is full, to
// the last byte, keeps its exit status: it is neither unknown nor a preemption.
func TestTaskThatEndsOnAFullDiskKeepsItsExitStatus(t *testing.T) {
	dir, notes := mounted(t, "size=4m"), t.TempDir()
	if err := keyring.CreateKeyFile(filepath.Join(notes, "kms")); err != nil {
		t.Fatal(err)
	}
	writeConfig(t, dir, fmt.Sprintf(fullDiskWorkload, notes))
	if _, stderr, code := frayIn(t, dir, "apply", "--auto-approve"); code != 0 {
		t.Fatalf("apply with space: exit %d\n%s", code, stderr)
	}
	var pids []int
	for _, name := range []string{"zero", "three", "killed"} {
		data, err := os.ReadFile(filepath.Join(notes, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	filler := filepath.Join(dir, "filler")
	fillWhole(t, filler)
	if err := os.WriteFile(filepath.Join(notes, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := within(patience, func() error {
		fillWhole(t, filler) // what others have freed
		for _, pid := range pids {
			if state := letter(pid); state != 'Z' {
				return fmt.Errorf("pid %d has not ended: %c", pid, state)
			}
		}
		for _, p := range processes(dir) {
			if strings.Contains(p.cmdline, "task-shim") {
				return fmt.Errorf("a supervisor has not ended: %s", p.cmdline)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	doc := appliedUntilEnded(t, dir)
	for _, want := range []struct {
		key    string
		status schema.JobStatus
		code   int // -1: none
	}{{"zero", schema.JobSucceeded, 0}, {"three", schema.JobFailed, 3}, {"killed", schema.JobFailed, -1}} {
		j := doc.Jobs[schema.Address{Kind: schema.KindJob, Name: "ends", Key: schema.StringKey(want.key)}]
		if j == nil || j.Last() == nil || len(j.Last().Tasks) != 1 {
			t.Errorf("%s: the state has %+v", want.key, j)
			continue
		}
		code := -1
		if c := j.Last().Tasks[0].ExitCode; c != nil {
			code = *c
		}
		if j.Status != want.status || code != want.code || j.UnknownEnds+j.Preemptions != 0 || j.Attempt != 1 {
			t.Errorf("%s is %s with exit code %d after %d attempts, %d of them unknown, %d preempted (%s); want %s with %d after 1",
				want.key, j.Status, code, j.Attempt, j.UnknownEnds, j.Preemptions, j.Reason, want.status, want.code)
		}
	}
	if stdout, stderr, code := frayIn(t, dir, "destroy", "--auto-approve"); code != 0 {
		t.Errorf("destroy: exit %d\n%s%s", code, stdout, stderr)
	}
}

// appliedUntilEnded applies until every job has ended, and returns the state. An agent
// reports the end of a task once its disk has space again, and an apply records what was
// reported when it planned.
func appliedUntilEnded(t *testing.T, dir string) state.Document {
	t.Helper()
	var doc state.Document
	reported := false
	if err := within(patience, func() error {
		_, _, code := frayIn(t, dir, "apply", "--auto-approve")
		reported = reported || code != 0
		stdout, stderr, _ := frayIn(t, dir, "state", "pull")
		var err error
		if doc, err = state.Decode([]byte(stdout)); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		for addr, j := range doc.Jobs {
			if !j.Status.Ended() {
				return fmt.Errorf("%s is %s: %s", addr, j.Status, j.Reason)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !reported {
		t.Error("every apply ends with 0, although jobs have failed")
	}
	return doc
}

// fillWhole is fill to the last byte, also of what has become free since.
func fillWhole(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, unix.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// In a directory that may not be written, plan works and apply says why not.
func TestReadOnlyDirectory(t *testing.T) {
	dir := mounted(t, "size=512k")
	writeConfig(t, dir, sleeper)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := frayIn(t, dir, "plan"); code != 0 {
		t.Errorf("plan: exit %d\n%s", code, stderr)
	}
	_, stderr, code := frayIn(t, dir, "apply", "--auto-approve")
	if code != terminal.ExitError || !strings.Contains(stderr, "read-only file system") || !strings.Contains(stderr, ".fray") {
		t.Errorf("apply: exit %d, want an error that names the directory:\n%s", code, stderr)
	}
}
