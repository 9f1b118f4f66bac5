package lsp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envServed has TestMain be a server over its standard streams instead of running tests: its
// value is the pause.
const envServed = "FRAY_LSP_SERVED"

func TestMain(m *testing.M) {
	pause, err := time.ParseDuration(os.Getenv(envServed))
	if err != nil {
		os.Exit(m.Run())
	}
	defer CollectLess()()
	dir, err := os.Getwd()
	if err == nil {
		err = Serve(context.Background(), Options{In: os.Stdin, Out: os.Stdout, Dir: dir, Version: "test", Pause: pause})
	}
	if err != nil && !errors.Is(err, ErrNotShutDown) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a server in a process of its own, on some cores, and its editor.
type process struct {
	*editor

	pid int
}

func startProcess(t testing.TB, files map[string]string, pause time.Duration, cores int) *process {
	t.Helper()
	dir := directoryOf(t, files)
	cmd := exec.Command(os.Args[0])
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), envServed+"="+pause.String(), "GOMAXPROCS="+strconv.Itoa(cores))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e := connect(t, dir, out, in)
	t.Cleanup(func() {
		e.closeIn()
		_ = cmd.Wait()
	})
	e.initialize()
	return &process{e, cmd.Process.Pid}
}

// cpu is what the server has used of all cores.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	const ofProcess = 2 // CPUCLOCK_SCHED of all threads, see clock_getcpuclockid
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^p.pid<<3|ofProcess), &now); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(now.Nano())
}
