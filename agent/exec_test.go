package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestExec(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := job("exec sleep 1000")
	spec.Environment.Env = map[string]schema.Text{"GREETING": schema.Plain("hello")}
	r.runs(spec)
	client := r.hostClient(minted(t, userClaims()))
	script := filepath.Join(r.work, "tool.sh")
	if err := writeProgram(script, "#!/bin/sh\necho tool $1\n"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, input string
		command     []string
		want        said
	}{
		{"the task's variables", "", []string{"sh", "-c", "echo $GREETING $FRAY_JOB_ID"}, said{stdout: "hello id-1\n"}},
		{"the agent's program", "", []string{"sh", "-c", "test -x \"$FRAY_PROGRAM\" && echo there"}, said{stdout: "there\n"}},
		{"the task's directory", "", []string{"./tool.sh", "x"}, said{stdout: "tool x\n"}},
		{"both outputs and a code", "", []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, said{"out\n", "err\n", 7}},
		{"input", "typed", []string{"cat"}, said{stdout: "typed"}},
		{"input that is not read", strings.Repeat("x", 1<<20), []string{"true"}, said{}},
		{"a signal ends it", "", []string{"sh", "-c", "kill -9 $$"}, said{code: 137}},
		{"no terminal", "", []string{"sh", "-c", "test -t 0 || test -t 1 || echo none"}, said{stdout: "none\n"}},
		{"what it leaves ends with it", "", []string{"sh", "-c", "sleep 1000 & setsid sleep 1000 & echo left"}, said{stdout: "left\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := execute(t.Context(), client, &clusterapi.ExecStart{JobId: "id-1", Command: test.command}, test.input)
			if err != nil || got != test.want {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
	got, err := execute(t.Context(), client, &clusterapi.ExecStart{JobId: "id-1", Command: []string{"no-such-program"}}, "")
	if err != nil || got.code != 127 || !strings.Contains(got.stderr, `command "no-such-program" not found on PATH`) {
		t.Errorf("an unknown command says %+v, %v", got, err)
	}
	start := &clusterapi.ExecStart{JobId: "id-1", Command: []string{"no-such-program"}, Tty: true}
	if got, err = execute(t.Context(), client, start, ""); err != nil || !strings.HasSuffix(got.stderr, ")\r\n") {
		t.Errorf("an unknown command on a terminal says %+v, %v; want it to end its line", got, err)
	}
	const size = 3 << 20
	got, err = execute(t.Context(), client, sh("head -c "+strconv.Itoa(size)+" /dev/zero"), "")
	if err != nil || len(got.stdout) != size {
		t.Errorf("%d bytes came, %v; want %d", len(got.stdout), err, size)
	}
}

func TestExecOnATerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	start := sh(`trap 'echo resized; stty size' WINCH; trap 'echo interrupted; exit 3' INT; echo $TERM; stty size; while :; do sleep 0.02; done`)
	start.Tty, start.Term, start.Size = true, "vt100", &clusterapi.WindowSize{Rows: 10, Columns: 33}
	stream, err := begin(t.Context(), r.hostClient(minted(t, userClaims())), start)
	if err != nil {
		t.Fatal(err)
	}
	got, err := hear(stream, func(s said) bool { return strings.Contains(s.stdout, "33") })
	if err != nil || !strings.Contains(got.stdout, "vt100\r\n10 33") {
		t.Fatalf("it says %+v, %v; want its terminal and the size", got, err)
	}
	resize := &clusterapi.ExecRequest_Resize{Resize: &clusterapi.WindowSize{Rows: 20, Columns: 66}}
	if err := stream.Send(&clusterapi.ExecRequest{Kind: resize}); err != nil {
		t.Fatal(err)
	}
	if got, err = hear(stream, func(s said) bool { return strings.Contains(s.stdout, "20 66") }); err != nil {
		t.Fatalf("after a resize it says %+v, %v", got, err)
	}
	if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: []byte{3}}}); err != nil {
		t.Fatal(err)
	}
	got, err = hear(stream, func(said) bool { return false })
	if err != nil || got.code != 3 || !strings.Contains(got.stdout, "interrupted") {
		t.Errorf("after a Ctrl-C it says %+v, %v", got, err)
	}
}

// What has escaped and holds the command's outputs open is not waited for.
func TestExecDoesNotWaitForEscapedProcesses(t *testing.T) {
	t.Parallel()
	for _, tty := range []bool{false, true} {
		t.Run("tty "+strconv.FormatBool(tty), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.runs(job("exec sleep 1000"))
			start := sh(`env -i PATH="$PATH" setsid sh -c 'trap "" HUP; echo $$; exec sleep 1000' & read line; exit 6`)
			start.Tty = tty
			stream, err := begin(t.Context(), r.hostClient(minted(t, userClaims())), start)
			if err != nil {
				t.Fatal(err)
			}
			got, err := hear(stream, func(s said) bool { return strings.Contains(s.stdout, "\n") })
			if err != nil {
				t.Fatal(err)
			}
			escaped := pidsOf(t, got.stdout)
			t.Cleanup(func() { _ = syscall.Kill(escaped[0], syscall.SIGKILL) })
			if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: []byte("go\n")}}); err != nil {
				t.Fatal(err)
			}
			if got, err = hear(stream, func(said) bool { return false }); err != nil || got.code != 6 {
				t.Errorf("it ends with %+v, %v; want code 6", got, err)
			}
			if !alive(escaped[0]) {
				t.Error("it has not escaped")
			}
		})
	}
}

// TestExecSignalBehindInput: input that a command does not read delays no signal.
func TestExecSignalBehindInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	stream, err := begin(t.Context(), r.hostClient(minted(t, userClaims())), sh(`trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hear(stream, func(s said) bool { return s.stdout != "" }); err != nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	for range 16 { // more than a pipe takes
		if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: make([]byte, 32<<10)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Signal{Signal: int32(syscall.SIGTERM)}}); err != nil {
		t.Fatal(err)
	}
	if got, err := hear(stream, func(said) bool { return false }); err != nil || got.code != 7 {
		t.Errorf("got %+v, %v; want the exit code of the trap", got, err)
	}
}

func TestExecSignal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.runs(job("exec sleep 1000"))
	stream, err := begin(t.Context(), r.hostClient(minted(t, userClaims())), sh(`trap 'echo usr; exit 5' USR1; echo ready; while :; do sleep 0.02; done`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hear(stream, func(s said) bool { return s.stdout == "ready\n" }); err != nil {
		t.Fatalf("it says %+v, %v", got, err)
	}
	for _, sig := range []int32{-9, 0, 1000, int32(syscall.SIGUSR1)} { // those that are none do nothing
		if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Signal{Signal: sig}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := hear(stream, func(said) bool { return false }); err != nil || got.code != 5 || got.stdout != "usr\n" {
		t.Errorf("after the signal it says %+v, %v", got, err)
	}
}

func TestExecRejections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	client := r.hostClient(minted(t, userClaims()))
	r.stack = testStack
	none := r.assign(nil)
	r.await("the assignment", func(h state.HostReport) bool { return h.Generation == none })
	refused := func(name string, start *clusterapi.ExecStart, code codes.Code, says string) {
		t.Helper()
		if _, err := execute(t.Context(), client, start, ""); status.Code(err) != code || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: exec says %v, want %s with %q", name, err, code, says)
		}
	}
	refused("no task yet", sh("true"), codes.NotFound, "has run no task yet")
	r.runs(job("exec sleep 1000"))
	refused("another job", &clusterapi.ExecStart{JobId: "id-2", Command: []string{"true"}}, codes.NotFound, "it has [task 0 of job.a]")
	refused("another task", &clusterapi.ExecStart{JobId: "id-1", Task: 1, Command: []string{"true"}}, codes.NotFound, "no task 1 of job id-1")
	refused("no command", &clusterapi.ExecStart{JobId: "id-1"}, codes.InvalidArgument, "start.command")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 16 {
		stream, err := begin(ctx, client, sh("echo up; exec sleep 1000"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hear(stream, func(s said) bool { return s.stdout == "up\n" }); err != nil {
			t.Fatal(err)
		}
	}
	refused("one too many", sh("true"), codes.ResourceExhausted, "16 commands")
	cancel()
	quick := job("exit 0")
	r.awaitTask(r.assign(&quick), schema.TaskSucceeded)
	eventually(t, "room for commands", func() bool {
		_, err := execute(t.Context(), client, sh("true"), "")
		return status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "has ended")
	}, nothing)
}

func TestExecInAContainer(t *testing.T) {
	t.Parallel()
	containerTest(t, func(t *testing.T, r *containerRig) {
		spec := job("exec sleep 1000")
		spec.Environment.Image = r.image
		spec.Environment.Env = map[string]schema.Text{"GREETING": schema.Plain("hello")}
		r.runs(spec)
		client := r.hostClient(minted(t, userClaims()))
		got, err := execute(t.Context(), client, sh("echo $GREETING; exit 4"), "")
		if err != nil || got.code != 4 || got.stdout != "hello\n" {
			t.Errorf("got %+v, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := begin(ctx, client, sh(`trap 'echo usr' USR1; echo ready; while :; do sleep 0.02; done`))
		if err != nil {
			t.Fatal(err)
		}
		if got, err = hear(stream, func(s said) bool { return s.stdout == "ready\n" }); err != nil {
			t.Fatalf("it says %+v, %v", got, err)
		}
		if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Signal{Signal: int32(syscall.SIGUSR1)}}); err != nil {
			t.Fatal(err)
		}
		if got, err = hear(stream, func(s said) bool { return strings.Contains(s.stdout, "usr\n") }); err != nil {
			t.Fatalf("after a signal it says %+v, %v", got, err)
		}
		marks, err := os.ReadDir(filepath.Join(r.dir, hostdir.ExecsDir))
		if err != nil || len(marks) != 1 {
			t.Fatalf("records of commands are %v, %v; want one", marks, err)
		}
		cancel()
		eventually(t, "the command in the container to end", func() bool {
			all, err := process.List()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range all {
				if process.HasEnv(p.PID, process.NonceEnv+"="+marks[0].Name()) {
					return false
				}
			}
			return true
		}, nothing)
	})
}

// exec runs a command in a container: with its variables, and on after its client is gone.
func (d *fakeDocker) exec(call fakeCall, out *json.Encoder) (int, string) {
	var env []string
	words := call.Args[1:]
	for strings.HasPrefix(words[0], "--") {
		if words[0] == "--env" {
			env, words = append(env, words[1]), words[1:]
		}
		words = words[1:]
	}
	d.mu.Lock()
	c := d.containers[words[0]]
	d.mu.Unlock()
	if c == nil {
		return 1, "Error: No such container: " + words[0] + "\n"
	}
	cmd := exec.Command(words[1], words[2:]...)
	cmd.Env = append(append([]string{}, c.cmd.Env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		buffer := make([]byte, 4096)
		for {
			n, err := r.Read(buffer)
			_ = out.Encode(fakeFrame{Out: buffer[:n]}) // the client may be gone
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Run()
	_ = w.Close()
	<-passed
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), ""
	}
	if err != nil {
		return 126, err.Error()
	}
	return 0, ""
}
