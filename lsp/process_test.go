package lsp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
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
		err = Serve(context.Background(), Options{In: os.Stdin, Out: answers{}, Dir: dir, Version: "test", Pause: pause})
	}
	if err != nil && !errors.Is(err, ErrNotShutDown) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answers is the standard output of a server, which notes on the standard error what the process has used when
// it publishes diagnostics of a version.
type answers struct{}

// Write implements [io.Writer].
func (answers) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte(`"textDocument/publishDiagnostics"`)) {
		if found := regexp.MustCompile(`"version":(\d+)`).FindSubmatch(data); found != nil {
			used, err := cpuOf(os.Getpid())
			if err != nil {
				return 0, err
			}
			fmt.Fprintf(os.Stderr, "%s %d\n", found[1], used)
		}
	}
	return os.Stdout.Write(data)
}

// cpuOf is what a process has used of all cores.
func cpuOf(pid int) (time.Duration, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED of all threads, see clock_getcpuclockid
	var now unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|ofProcess), &now)
	return time.Duration(now.Nano()), err
}

// answer is what a server had used when it published the diagnostics of a version.
type answer struct {
	version int
	used    time.Duration
}

// process is a server in a process of its own, on some cores, and its editor.
type process struct {
	*editor

	pid     int
	answers chan answer
}

func startProcess(t testing.TB, files map[string]string, pause time.Duration, cores int) *process {
	t.Helper()
	dir := directoryOf(t, files)
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), envServed+"="+pause.String(), "GOMAXPROCS="+strconv.Itoa(cores))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	notes, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{connect(t, dir, out, in), cmd.Process.Pid, make(chan answer, 1000)}
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		for lines := bufio.NewScanner(notes); lines.Scan(); {
			var a answer
			if _, err := fmt.Sscanf(lines.Text(), "%d %d", &a.version, &a.used); err != nil {
				t.Errorf("the server writes %q", lines.Text())
				continue
			}
			p.answers <- a
		}
	}()
	t.Cleanup(func() {
		p.closeIn()
		<-noted
		_ = cmd.Wait()
	})
	p.initialize()
	return p
}

// cpu is what the server has used of all cores.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	used, err := cpuOf(p.pid)
	if err != nil {
		p.t.Fatal(err)
	}
	return used
}

// answered is what the server had used when it first published diagnostics of a version.
func (p *process) answered(version int) time.Duration {
	for a := range p.answers {
		if a.version == version {
			return a.used
		}
	}
	return 0
}
