package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/clusterapi"
)

const (
	// hangupGrace is between the hangup that a command gets when its call ends,
	// and its end by force.
	hangupGrace = 5 * time.Second
	// drainGrace bounds how long what a command wrote last may take to come
	// when nothing of it is left.
	drainGrace = 2 * time.Second
	// outputSize is how much of a command's output goes into one message, in bytes.
	outputSize = 32 << 10
	// maxQueued is how many messages of input wait for a command that does not read:
	// signals and resizes behind them do not wait.
	maxQueued = 64
)

// Spec is a command as it is to be started.
type Spec struct {
	Path      string
	Argv, Env []string
	Dir       string
	Nonce     string // in the environment of all its processes
	TTY       bool
	Size      *clusterapi.WindowSize // of its terminal
	// Inside is set where the command is the client of a container's runtime,
	// which passes no signals on.
	Inside bool
}

// Stream is the call that a command belongs to.
type Stream = grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]

// Run starts a command and returns its exit code when nothing of it is left and
// all that it wrote is sent. It ends the command when ctx ends.
func Run(ctx context.Context, spec Spec, stream Stream) (int, error) {
	return (&execution{spec: spec, stream: stream, input: make(chan []byte, maxQueued)}).run(ctx)
}

// execution is one command and the call that it belongs to.
type execution struct {
	spec   Spec
	stream Stream

	cmd   *exec.Cmd
	stdin *os.File    // or the terminal
	input chan []byte // to be written to stdin; nil ends it
	ours  []*os.File

	sending sync.Mutex
	readers sync.WaitGroup
	over    atomic.Bool // nothing of the command is left
}

// run starts the command and returns its exit code when nothing of it is left
// and all that it wrote is sent.
func (e *execution) run(ctx context.Context) (int, error) {
	ended := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		// The command dies with the thread that starts it: with this agent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := e.start()
		started <- err
		if err == nil {
			ended <- e.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		e.close()
		return 0, err
	}
	go e.write()
	go e.receive()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = e.hangUp(ended)
	}
	swept := process.Sweep(process.Traces{Session: e.cmd.Process.Pid, Group: e.cmd.Process.Pid, Nonce: e.spec.Nonce})
	e.drain()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return 0, errors.Join(err, swept)
	}
	return codeOf(e.cmd.ProcessState), swept
}

// codeOf is an exit code as shells have it.
func codeOf(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// start starts the command as the leader of a session of its own.
func (e *execution) start() error {
	e.cmd = &exec.Cmd{Path: e.spec.Path, Args: e.spec.Argv, Env: e.spec.Env, Dir: e.spec.Dir}
	attr := &syscall.SysProcAttr{Setsid: true}
	process.DieWithParent(attr)
	e.cmd.SysProcAttr = attr
	if e.spec.TTY {
		terminal, theirs, err := openTerminal(e.spec.Size)
		if err != nil {
			return fmt.Errorf("start %s on a terminal: %w", e.spec.Argv[0], err)
		}
		defer theirs.Close()
		e.stdin, e.ours = terminal, []*os.File{terminal}
		attr.Setctty = true
		e.cmd.Stdin, e.cmd.Stdout, e.cmd.Stderr = theirs, theirs, theirs
		if err := e.cmd.Start(); err != nil {
			return fmt.Errorf("start %s on a terminal: %w", e.spec.Argv[0], err)
		}
		e.read(terminal, stdoutOf)
		return nil
	}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	open := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err != nil {
			return nil, nil, fmt.Errorf("start %s: %w", e.spec.Argv[0], err)
		}
		return r, w, nil
	}
	in, stdin, err := open()
	if err != nil {
		return err
	}
	theirs, e.stdin, e.ours = append(theirs, in), stdin, append(e.ours, stdin)
	out, stdout, err := open()
	if err != nil {
		return err
	}
	theirs, e.ours = append(theirs, stdout), append(e.ours, out)
	failed, stderr, err := open()
	if err != nil {
		return err
	}
	theirs, e.ours = append(theirs, stderr), append(e.ours, failed)
	e.cmd.Stdin, e.cmd.Stdout, e.cmd.Stderr = in, stdout, stderr
	if err := e.cmd.Start(); err != nil {
		return err
	}
	e.read(out, stdoutOf)
	e.read(failed, stderrOf)
	return nil
}

func stdoutOf(data []byte) *clusterapi.ExecResponse {
	return &clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stdout{Stdout: data}}
}

func stderrOf(data []byte) *clusterapi.ExecResponse {
	return &clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stderr{Stderr: data}}
}

// openTerminal opens our end of a new terminal and the command's.
func openTerminal(size *clusterapi.WindowSize) (ours, theirs *os.File, err error) {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	raw, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		// A file that blocks has no deadlines: drain would wait for any process that holds the terminal.
		err = unix.SetNonblock(raw, true)
		ours = os.NewFile(uintptr(raw), blocking.Name())
	}
	if err == nil {
		err = resize(ours, size)
	}
	if err != nil {
		theirs.Close()
		ours.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// resize sets a terminal's size: 24 rows and 80 columns unless stated.
// Unlike pty.Setsize it may meet the terminal's end, and leaves its deadlines.
func resize(terminal *os.File, size *clusterapi.WindowSize) error {
	to := &unix.Winsize{Row: 24, Col: 80}
	if size.GetRows() != 0 && size.GetColumns() != 0 {
		to.Row, to.Col = uint16(min(size.GetRows(), 9999)), uint16(min(size.GetColumns(), 9999))
	}
	conn, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = conn.Control(func(fd uintptr) { set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, to) })
	return errors.Join(err, set)
}

// read sends what the command writes. A caller that takes nothing blocks the
// command, as a terminal would.
func (e *execution) read(from *os.File, as func([]byte) *clusterapi.ExecResponse) {
	e.readers.Go(func() {
		buffer := make([]byte, outputSize)
		for {
			if e.over.Load() { // a slow caller has not used up the grace
				_ = from.SetReadDeadline(time.Now().Add(drainGrace))
			}
			n, err := from.Read(buffer)
			if err != nil && n == 0 {
				n = available(from, buffer)
			}
			if n > 0 && e.send(as(buffer[:n])) != nil {
				_, _ = io.Copy(io.Discard, from) // the call is over; the command is being ended
				return
			}
			if n == 0 && err != nil {
				return // the end; of a terminal it is an error
			}
		}
	})
}

// available reads what is there without waiting, and returns 0 if that is nothing. A
// deadline that passed while this process did not run, or the end of a terminal, may
// be reported before what was written last is read: Linux tests whether a terminal has
// input and whether its other end is closed one after the other (n_tty_read).
func available(from *os.File, buffer []byte) int {
	conn, err := from.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	err = conn.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), buffer) })
	if err != nil {
		return 0
	}
	return max(0, n)
}

func (e *execution) send(m *clusterapi.ExecResponse) error {
	e.sending.Lock()
	defer e.sending.Unlock()
	return e.stream.Send(m)
}

// receive carries out the caller's messages until the call ends.
func (e *execution) receive() {
	defer close(e.input)
	for {
		m, err := e.stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				e.input <- nil
			}
			return
		}
		switch kind := m.GetKind().(type) {
		case *clusterapi.ExecRequest_Stdin:
			if len(kind.Stdin) > 0 {
				e.input <- kind.Stdin
			}
		case *clusterapi.ExecRequest_StdinClosed:
			e.input <- nil
		case *clusterapi.ExecRequest_Resize:
			if e.spec.TTY {
				_ = resize(e.stdin, kind.Resize) // it has ended
			}
		case *clusterapi.ExecRequest_Signal:
			e.signal(unix.Signal(kind.Signal))
		case *clusterapi.ExecRequest_Start: // there is one only
		}
	}
}

// write writes the command's input. A command that reads no more may do so: what is
// written to it is lost.
func (e *execution) write() {
	for data := range e.input {
		if data == nil {
			e.closeStdin()
			continue
		}
		_, _ = e.stdin.Write(data)
	}
}

// endOfInput is what a terminal takes for the end of what is typed.
const endOfInput = 4

func (e *execution) closeStdin() {
	if e.spec.TTY {
		_, _ = e.stdin.Write([]byte{endOfInput})
		return
	}
	_ = e.stdin.Close()
}

// signal signals the command; one in a container is found by its mark, since
// its client passes nothing on.
func (e *execution) signal(sig unix.Signal) {
	if sig <= 0 || sig > 64 {
		return
	}
	pid := e.cmd.Process.Pid
	if !e.spec.Inside {
		_ = process.Signal(-pid, sig) // one that has ended already needs none
		return
	}
	all, err := process.List()
	if err != nil {
		return
	}
	for _, p := range all {
		if p.Session != pid && process.HasEnv(p.PID, process.NonceEnv+"="+e.spec.Nonce) {
			_ = process.Signal(p.PID, sig)
		}
	}
}

// hangUp sends the command a hangup, and ends it by force after a grace.
func (e *execution) hangUp(ended <-chan error) error {
	e.signal(unix.SIGHUP)
	e.signal(unix.SIGCONT)
	select {
	case err := <-ended:
		return err
	case <-time.After(hangupGrace):
	}
	_ = process.Signal(-e.cmd.Process.Pid, unix.SIGKILL)
	return <-ended
}

// drain waits until all output is sent. Nothing writes any more but a process that
// escaped, which is not waited for.
func (e *execution) drain() {
	e.over.Store(true)
	for _, f := range e.ours {
		_ = f.SetReadDeadline(time.Now().Add(drainGrace)) // a file without deadlines is one that ends by itself
	}
	e.readers.Wait()
	e.close()
}

func (e *execution) close() {
	for _, f := range e.ours {
		f.Close()
	}
}
