package process

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// firstThreadEndsEnv makes the test's program one whose first thread ends while the
// others run on.
const firstThreadEndsEnv = "PROCESS_TEST_FIRST_THREAD_ENDS"

var _ = endFirstThread() // variables are made on the first thread

func endFirstThread() struct{} {
	if os.Getenv(firstThreadEndsEnv) == "" {
		return struct{}{}
	}
	runtime.LockOSThread()
	go func() {
		for letter(os.Getpid()) != 'Z' {
			runtime.Gosched()
		}
		_, _ = os.Stdout.WriteString("the first thread has ended\n")
		select {}
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	return struct{}{}
}

// A process lives for as long as one of its threads: it holds locks, ports and devices.
func TestProcessOutlivesItsFirstThread(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), firstThreadEndsEnv+"=of this test")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	pid := cmd.Process.Pid
	if letter(pid) != 'Z' {
		t.Fatalf("the first thread of %d has state %c", pid, letter(pid))
	}
	listed := func() bool {
		all, err := List()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(p Process) bool { return p.PID == pid })
	}
	if !listed() {
		t.Fatal("a process of which threads run is not listed")
	}
	if !HasEnvPrefix(pid, firstThreadEndsEnv+"=of") {
		t.Error("its environment is not found")
	}
	// The sweep kills it and returns once it is over: its zombie counts no more.
	err = SweepAll(func(all []Process) []int {
		if slices.ContainsFunc(all, func(p Process) bool { return p.PID == pid }) {
			return []int{pid}
		}
		return nil
	})
	if err != nil || listed() {
		t.Errorf("after the sweep: %v, listed: %v", err, listed())
	}
	ended = true
	if err := cmd.Wait(); err == nil {
		t.Error("the process was not killed")
	}
}

// letter is the state of a process's first thread.
func letter(pid int) byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return data[bytes.LastIndexByte(data, ')')+2]
}
