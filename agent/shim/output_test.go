package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/logtime"
)

// logFiles are a log and its times in a fresh directory.
type logFiles struct{ log, times string }

func newLogFiles(t *testing.T) logFiles {
	dir := t.TempDir()
	return logFiles{filepath.Join(dir, "log"), filepath.Join(dir, "times")}
}

func (f logFiles) open(t *testing.T) *datedLog {
	t.Helper()
	l, err := openLog(f.log, f.times)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (f logFiles) read(t *testing.T) (string, logtime.Index) {
	t.Helper()
	data, err := os.ReadFile(f.log)
	if err != nil {
		t.Fatal(err)
	}
	times, err := os.ReadFile(f.times)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), logtime.Parse(times)
}

// awaits waits until the log has a text.
func (f logFiles) awaits(t *testing.T, want string) {
	t.Helper()
	for until := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		got, _ := f.read(t)
		if got == want {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the log has %q, want %q", got, want)
		}
	}
}

// TestOutputGoesOnWhereItIsMasked holds that a quiet task's line is shown
// although a secret may begin with its end, and that a process which is no
// descendant does not keep a task from ending.
func TestOutputGoesOnWhereItIsMasked(t *testing.T) {
	files := newLogFiles(t)
	out, err := copyOutput(files.open(t), []string{"secret-of-32-bytes-0123456789abc"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.command.WriteString("step 1 loss s\n"); err != nil {
		t.Fatal(err)
	}
	files.awaits(t, "step 1 loss s\n")
	if err := out.finish(); err != nil {
		t.Error(err)
	}
}

// Each line has the time at which it came, binary ones and the one without an end too,
// and goes on after a restart where it ended.
func TestOutputIsDated(t *testing.T) {
	files := newLogFiles(t)
	text := ""
	for _, lines := range [][]string{{"first\n", "\x00\xff\n\r\x1b[31m", "no end"}, {" of the line\n", "last\n"}} {
		out, err := copyOutput(files.open(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			before := time.Now().Truncate(time.Millisecond)
			if _, err := out.command.WriteString(line); err != nil {
				t.Fatal(err)
			}
			text += line
			files.awaits(t, text)
			after := time.Now()
			_, index := files.read(t)
			if at := index.At(int64(len(text) - 1)); at.Before(before) || at.After(after) {
				t.Errorf("%q was written at %v, want between %v and %v", line, at, before, after)
			}
		}
		if err := out.finish(); err != nil {
			t.Error(err)
		}
	}
}

// What is withheld, since it may begin a secret, has the time at which it came and not
// that at which it was shown.
func TestWithheldOutputIsDated(t *testing.T) {
	files := newLogFiles(t)
	l := files.open(t)
	write := func(text string) {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	second := func(n int64) time.Time { return time.Unix(n, 0) }
	l.arrived(second(1), 0)
	write("12") // of "12345", say
	l.arrived(second(2), 3)
	write("345" + "67")
	l.arrived(second(3), 0)
	write("8")
	l.close()
	_, index := files.read(t)
	var got []string
	for i := range int64(8) {
		got = append(got, fmt.Sprint(index.At(i).Unix()))
	}
	if want := "1 1 1 1 1 2 2 3"; strings.Join(got, " ") != want {
		t.Errorf("the bytes are of %v, want %s", got, want)
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
	l := &datedLog{file: full, times: full}
	for range 3 {
		if n, err := l.Write([]byte("12345")); n != 5 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	files := newLogFiles(t)
	free := files.open(t)
	l.file, l.times = free.file, free.times
	l.arrived(time.Unix(7, 0), 0)
	if _, err := l.Write([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	l.close()
	got, index := files.read(t)
	if want := "\nfray: 15 bytes of output are lost: write /dev/full: no space left on device\nafter\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if at := index.At(int64(len(got) - 1)); at.Unix() != 7 {
		t.Errorf("its last line was written at %v", at)
	}
}

// BenchmarkOutput copies lines of 100 bytes as a program writes them, whole buffers or
// each line by itself, beside a copy that dates nothing.
func BenchmarkOutput(b *testing.B) {
	const lines, line = 2000, 100
	for _, write := range []int{1, 600} {
		for _, dated := range []bool{false, true} {
			b.Run(fmt.Sprintf("lines=%d/dated=%v", write, dated), func(b *testing.B) {
				text := []byte(strings.Repeat(strings.Repeat("x", line-1)+"\n", write))
				b.SetBytes(lines * line)
				for b.Loop() {
					log, err := openLog(filepath.Join(b.TempDir(), "log"), filepath.Join(b.TempDir(), "times"))
					if err != nil {
						b.Fatal(err)
					}
					if !dated {
						log.times.Close()
						log.times = nil
					}
					out, err := copyOutput(log, nil)
					if err != nil {
						b.Fatal(err)
					}
					for n := 0; n < lines; n += write {
						if _, err := out.command.Write(text); err != nil {
							b.Fatal(err)
						}
					}
					if err := out.finish(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
