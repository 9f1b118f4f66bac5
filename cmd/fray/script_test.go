package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fray-ml/fray/state"
)

// fray is the binary that the tests of this package run: the real one, since
// agents are started from it. See needsFray.
var fray string

// programVariable names a fray that scripts/test has built already.
const programVariable = "FRAY_TEST_PROGRAM"

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if len(os.Args) > 3 && os.Args[1] == clusterTaskWord {
		return clusterTask(os.Args[2:])
	}
	if len(os.Args) > 1 && (os.Args[1] == "agent" || os.Args[1] == "task-shim") { // of a stack that a test applies in this process
		return run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	if len(os.Args) == 2 && os.Args[1] == actorHostWord {
		return actorHost()
	}
	flag.Parse()
	if testing.Short() {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "fray-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fray = filepath.Join(dir, "fray")
	if built := os.Getenv(programVariable); built != "" {
		data, err := os.ReadFile(built)
		if err == nil {
			err = os.WriteFile(fray, data, 0o755)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", fray, ".") // as it is released, and less to copy
	build.Env = append(os.Environ(), "CGO_ENABLED=0")                       // as hosts in the cloud need it
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build fray: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// patience is how long anything may take on a busy machine before a test gives
// up on it.
const patience = 5 * time.Minute

var update = flag.Bool("update", false, "rewrite goldens")

func TestScript(t *testing.T) {
	needsFray(t)
	library, err := filepath.Abs(filepath.Join("..", "..", "library"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			program, err := os.Executable() // hosts actors
			if err != nil {
				return err
			}
			env.Setenv("PATH", filepath.Dir(fray)+string(filepath.ListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("NO_COLOR", "1")
			env.Setenv("TZ", "UTC")
			env.Setenv("LIBRARY", library)
			env.Setenv("FRAY_VAR_program", program)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			bucket, err := startEmulator(true)
			if err != nil {
				return err
			}
			env.Vars = append(env.Vars, bucket.environ()...)
			env.Defer(bucket.end)
			env.Defer(func() { endProcesses(env.WorkDir) })
			env.Defer(watchdog(t, env.WorkDir))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"eventually": eventually,
			"noleft":     noLeft,
			"kill9":      kill9,
			"background": background,
			"guarded":    guarded,
			"asking":     asking,
			"interrupt":  interrupt,
			"left":       left,
			"agekey":     ageKey,
			"occupy":     occupy,
			"rigged":     rigged,
		},
	})
}

// eventually PATTERN CMD ARGS… runs a command until it succeeds and its output
// matches; with "!" until the output does not match.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile(args[0])
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && pattern.MatchString(out) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v: within %s no output like %q (neg %v); the last was (%v):\n%s", args[1:], patience, args[0], neg, err, out)
		}
		time.Sleep(pollDelay(time.Since(began)))
	}
}

// pollDelay is how long to wait after a look that took a time: three times as long, so that
// running fray to look leaves most of a machine to what is awaited.
func pollDelay(took time.Duration) time.Duration {
	return min(max(3*took, 50*time.Millisecond), 500*time.Millisecond)
}

// background CMD ARGS… starts a command that is ended with the script.
func background(ts *testscript.TestScript, _ bool, args []string) { start(ts, args, nil) }

// asking CMD ARGS… is background with a keyboard at which nothing is typed.
func asking(ts *testscript.TestScript, _ bool, args []string) {
	keyboard, silent, err := os.Pipe()
	ts.Check(err)
	start(ts, args, keyboard)
	ts.Check(keyboard.Close())
	ts.Defer(func() { _ = silent.Close() })
}

// rigged names a fray with crash points in RIGGED.
func rigged(ts *testscript.TestScript, _ bool, _ []string) {
	path, err := crashingFray()
	ts.Check(err)
	ts.Setenv("RIGGED", path)
}

// agekey FILE writes an age identity, and its recipient to FILE.pub.
func ageKey(ts *testscript.TestScript, _ bool, args []string) {
	identity, err := age.GenerateX25519Identity()
	ts.Check(err)
	path := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(path, []byte(identity.String()+"\n"), 0o600))
	ts.Check(os.WriteFile(path+".pub", []byte(identity.Recipient().String()), 0o644))
}

// left CODE waits for the background command to end with a code, -1 by a signal.
func left(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	pid, err := strconv.Atoi(ts.Getenv("BACKGROUND"))
	ts.Check(err)
	deadline := time.Now().Add(patience)
	for letter(pid) != 'Z' {
		if time.Now().After(deadline) {
			ts.Fatalf("pid %d is still there after %s", pid, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
	var got syscall.WaitStatus
	_, err = syscall.Wait4(pid, &got, 0, nil)
	ts.Check(err)
	if got.ExitStatus() != want {
		ts.Fatalf("exit code %d, want %d", got.ExitStatus(), want)
	}
}

func start(ts *testscript.TestScript, args []string, stdin *os.File) {
	path := fray
	if args[0] != "fray" {
		path = args[0]
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.Getenv("PWD")
	if cmd.Dir == "" {
		cmd.Dir = ts.MkAbs(".")
	}
	cmd.Env = scriptEnv(ts)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	out, err := os.Create(ts.MkAbs("background.log"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = out, out
	ts.Check(cmd.Start())
	ts.Setenv("BACKGROUND", strconv.Itoa(cmd.Process.Pid))
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		deaf := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		deaf.Stop()
		_ = out.Close()
	})
}

// interrupt [KILL] sends the background command a Ctrl-C, or ends it at once.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	signal := syscall.SIGINT
	if slices.Contains(args, "KILL") {
		signal = syscall.SIGKILL
	}
	pid, err := strconv.Atoi(ts.Getenv("BACKGROUND"))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signal))
}

func scriptEnv(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "NO_COLOR", "TZ", "WORK", "STORAGE_EMULATOR_HOST"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// noLeft fails if any process that belongs to the script's directory is alive.
func noLeft(ts *testscript.TestScript, _ bool, _ []string) {
	work := ts.Getenv("WORK")
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		left := slices.DeleteFunc(processes(work), func(p process) bool { return strconv.Itoa(p.pid) == ts.Getenv("BACKGROUND") })
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("processes left behind:\n%s", strings.Join(processLines(left), "\n"))
		}
		time.Sleep(pollDelay(time.Since(began)))
	}
}

// kill9 WHAT JOB [HOST|STORE] sends SIGKILL to a "task", an "agent", or a "host"
// (both at once) of a job, or to all hosts of its "slice". STORE is the directory
// of its stack, .fray unless it is said.
func kill9(ts *testscript.TestScript, _ bool, args []string) {
	root := ".fray"
	if len(args) > 2 && strings.Contains(args[2], "/") {
		root, args = args[2], args[:2]
	}
	hosts := reports(ts.MkAbs(root), args[1])
	if len(hosts) == 0 {
		ts.Fatalf("no host reports a task of %s", args[1])
	}
	if len(args) > 2 {
		n, err := strconv.Atoi(args[2])
		ts.Check(err)
		hosts = hosts[n : n+1]
	} else if args[0] != "slice" {
		hosts = hosts[:1]
	}
	for _, h := range hosts {
		if h.PID <= 1 || h.Task == nil || h.Task.PID <= 1 {
			ts.Fatalf("a host of %s reports no process yet: %+v", args[1], h)
		}
		var victims []int
		task := append(descendants(h.Task.PID), h.Task.PID)
		switch args[0] {
		case "agent":
			victims = []int{h.PID}
		case "task":
			victims = task
		default: // a host takes the shim that would tell of the task's end along first
			victims = []int{h.PID}
			if shim := parent(h.Task.PID); shim > 1 {
				victims = append(victims, shim)
			}
			victims = append(victims, task...)
		}
		for _, pid := range victims {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				ts.Fatalf("kill %d: %v", pid, err)
			}
		}
	}
}

// reports are the reports of hosts that live and run a job, in task order.
func reports(root, job string) []state.HostReport {
	files, _ := filepath.Glob(filepath.Join(root, "hosts", "*", "*.json"))
	byTask := map[int]state.HostReport{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var r state.HostReport
		if json.Unmarshal(data, &r) == nil && r.Task != nil && r.Task.Job.String() == job && !r.Task.State.Ended() && letter(r.PID) != 'Z' {
			byTask[r.Task.Task] = r
		}
	}
	var out []state.HostReport
	for i := range len(byTask) {
		out = append(out, byTask[i])
	}
	return out
}

type process struct {
	pid, ppid int
	cmdline   string
}

// processes are those, but for this one, whose command line, directory or
// environment names a directory.
func processes(dir string) []process {
	entries, _ := os.ReadDir("/proc")
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || len(cmdline) == 0 {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		cwd, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if names(string(cmdline), dir) || names(string(environ), dir) || names(cwd, dir) {
			if state := letter(pid); state != 'Z' {
				out = append(out, process{pid: pid, ppid: parent(pid), cmdline: strings.ReplaceAll(string(cmdline), "\x00", " ")})
			}
		}
	}
	return out
}

// names reports whether a directory, or something in it, is named in a text;
// script-lease is not in script-lease_break.
func names(text, dir string) bool {
	for {
		_, after, found := strings.Cut(text, dir)
		if !found {
			return false
		}
		if after == "" || strings.ContainsAny(after[:1], "/\x00:,; \n\"'") {
			return true
		}
		text = after
	}
}

func statFields(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.Fields(rest)
}

func letter(pid int) byte {
	if f := statFields(pid); len(f) > 0 {
		return f[0][0]
	}
	return 'Z'
}

func parent(pid int) int {
	if f := statFields(pid); len(f) > 1 {
		n, _ := strconv.Atoi(f[1])
		return n
	}
	return 0
}

func descendants(pid int) []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err == nil && parent(child) == pid {
			out = append(out, child)
			out = append(out, descendants(child)...)
		}
	}
	return out
}

func processLines(ps []process) []string {
	var out []string
	for _, p := range ps {
		out = append(out, fmt.Sprintf("  %d (parent %d): %s", p.pid, p.ppid, p.cmdline))
	}
	return out
}

// endProcesses kills what a failed script left behind, by its directory.
func endProcesses(dir string) {
	for range 20 {
		left := processes(dir)
		if len(left) == 0 {
			return
		}
		for _, p := range left {
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
