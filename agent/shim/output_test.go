package shim

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOutputGoesOnWhereItIsMasked holds that a quiet task's line is shown
// although a secret may begin with its end, and that a process which is no
// descendant does not keep a task from ending.
func TestOutputGoesOnWhereItIsMasked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := maskOutput(log, []string{"secret-of-32-bytes-0123456789abc"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.command.WriteString("step 1 loss s\n"); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) == "step 1 loss s\n" {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the log has %q", data)
		}
	}
	if err := out.finish(); err != nil {
		t.Error(err)
	}
}

// TestFullDiskDoesNotStopACommand holds that a log without space takes
// everything, and tells later what it lost.
func TestFullDiskDoesNotStopACommand(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	l := &lossyLog{file: full}
	for range 3 {
		if n, err := l.Write([]byte("12345")); n != 5 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	path := filepath.Join(t.TempDir(), "log")
	free, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	l.file = free
	if _, err := l.Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	l.close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), "\nfray: 15 bytes of output are lost: write /dev/full: no space left on device\nafter\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}
