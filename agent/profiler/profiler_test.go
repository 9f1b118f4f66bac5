package profiler

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/profile"
)

func TestChoose(t *testing.T) {
	is := func(pid, depth int, of language, ticks uint64) candidate {
		return candidate{Process: process.Process{PID: pid}, depth: depth, language: of, ticks: ticks, program: fmt.Sprint("p", pid)}
	}
	for _, test := range []struct {
		name  string
		found []candidate // as describe sorts them
		pid   int
		want  int
		err   string
	}{
		{"the command itself", []candidate{is(1, 0, python, 5), is(2, 1, python, 500)}, 0, 1, ""},
		{"below a shell", []candidate{is(1, 0, native, 0), is(2, 1, python, 5)}, 0, 2, ""},
		{"the busiest of siblings comes first", []candidate{is(1, 0, native, 0), is(3, 1, python, 9), is(2, 1, python, 5)}, 0, 3, ""},
		{"Go", []candidate{is(1, 0, native, 0), is(2, 1, golang, 5)}, 0, 2, ""},
		{"none that can be measured", []candidate{is(1, 0, native, 0), is(2, 1, native, 5)}, 0, 1, ""},
		{"by its id", []candidate{is(1, 0, python, 0), is(2, 1, native, 5)}, 2, 2, ""},
		{"of another task", []candidate{is(1, 0, python, 0)}, 7, 0, "process 7 is not one of the task's; these are 1 (p1)"},
	} {
		got, err := choose(test.found, test.pid)
		if got.PID != test.want || test.err != "" && (err == nil || err.Error() != test.err) || test.err == "" && err != nil {
			t.Errorf("%s: got %d, %v; want %d, %q", test.name, got.PID, err, test.want, test.err)
		}
	}
}

func TestRemedy(t *testing.T) {
	for _, test := range []struct {
		scope string
		user  int
		want  string
	}{
		{"1", 1000, "sysctl kernel.yama.ptrace_scope=0"}, {"2", 1000, "CAP_SYS_PTRACE"}, {"3", 0, "until the machine boots"}, {"", 1000, "--cap-add SYS_PTRACE"}, {"0", 0, "CAP_SYS_PTRACE"},
	} {
		if got := remedy(test.scope, test.user); !strings.Contains(got, test.want) {
			t.Errorf("scope %q, user %d: %q, want %q in it", test.scope, test.user, got, test.want)
		}
	}
}

// TestRights: a process of another user may not be read, which is stated with the remedy.
func TestRights(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("rights are read from /proc")
	}
	if target := os.Getenv("FRAY_TEST_TARGET"); target != "" { // the child, without rights
		var pid int
		if _, err := fmt.Sscan(target, &pid); err != nil {
			t.Fatal(err)
		}
		fmt.Println("may:", mayTrace(pid))
		return
	}
	if err := mayTrace(os.Getpid()); err != nil {
		t.Errorf("this process: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // the other user enters them
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/test", program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), dir+"/test", "-test.run", "TestRights$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), fmt.Sprint("FRAY_TEST_TARGET=", os.Getpid())), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "may: the agent may not read the memory of process") || !strings.Contains(string(out), "CAP_SYS_PTRACE") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestCommandLinesAreLeftOut(t *testing.T) {
	in := `{"$schema":"x","shared":{"frames":[{"name":"process 12:\"python a.py --password tiger\nlion\"","file":null},{"name":"busy","file":"a.py","line":3}]},"profiles":[{"samples":[[0,1]]}]}`
	out, err := withoutCommandLines([]byte(in))
	if err != nil || bytes.Contains(out, []byte("tiger")) || bytes.Contains(out, []byte("lion")) || !bytes.Contains(out, []byte(`"process 12"`)) || !bytes.Contains(out, []byte(`"samples":[[0,1]]`)) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := withoutCommandLines([]byte("no JSON")); err == nil {
		t.Error("what is no profile is one")
	}
	dump := "Process 12: python a.py --password tiger\nPython v3.11.7 (/usr/bin/python3)\n\nThread 12 (active): \"MainThread\"\n    busy (a.py:3)\n"
	if got := withoutCommandLine(dump); strings.Contains(got, "tiger") || !strings.Contains(got, "busy (a.py:3)") {
		t.Errorf("the dump is %q", got)
	}
	if got := withoutCommandLine("Process 12: python --password tiger"); got != "" {
		t.Errorf("a dump without stacks is %q", got)
	}
}

// TestStacksOfThisProcess: threads are listed, and a Go program that serves nothing says how it would.
func TestStacksOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("stacks are read from /proc")
	}
	var out, notes bytes.Buffer
	order := Order{Kind: profile.Stacks, Duration: DefaultDuration, Rate: DefaultRate, Group: os.Getpid(), Session: sessionOf(t), Nonce: "none-has-this", Sockets: t.TempDir()}
	if code := Run(t.Context(), order, &out, &notes); code != 0 {
		t.Fatalf("code %d: %s", code, notes.String())
	}
	header, data, err := profile.Split(out.Bytes())
	if err != nil || header.Kind != profile.Stacks || header.Format != profile.PlainText || !strings.Contains(string(data), "Thread ") {
		t.Errorf("%v: %+v, %s", err, header, data)
	}
	if !strings.Contains(notes.String(), "serves no profiles") {
		t.Errorf("the notes are %s", notes.String())
	}
	order.Kind = profile.CPU
	out.Reset()
	if code := Run(t.Context(), order, &out, &notes); code == 0 || out.Len() > 0 {
		t.Errorf("code %d: %s", code, out.String())
	}
}

// sessionOf makes this process the first of a group, and returns its session.
func sessionOf(t *testing.T) int {
	t.Helper()
	if err := syscall.Setpgid(0, 0); err != nil {
		t.Fatal(err)
	}
	all, err := process.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.PID == os.Getpid() {
			return p.Session
		}
	}
	t.Fatal("this process is not listed")
	return 0
}

// TestPySpyThatCannotBeHad: the error says how to add it.
func TestPySpyThatCannotBeHad(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	m := &measurement{Order: Order{CacheDir: t.TempDir()}, notes: &bytes.Buffer{}}
	_, err := m.findPySpy(t.Context(), candidate{Process: process.Process{PID: 1 << 30}})
	if err == nil || !strings.Contains(err.Error(), "add py-spy to the job's environment (uv add py-spy, or to its image)") {
		t.Errorf("got %v", err)
	}
}
