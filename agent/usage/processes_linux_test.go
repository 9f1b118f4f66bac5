package usage

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// What a command and its children use counts, after the end of a child too.
func TestProcesses(t *testing.T) {
	// The child burns time and ends; its parent then waits for a word.
	cmd := exec.Command("sh", "-c", `sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 1000 & echo ready; read word`)
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
	kids := below(cmd.Process.Pid)
	defer func() {
		for _, pid := range append(below(cmd.Process.Pid), kids...) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		in.Close()
		_ = cmd.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	got, ok := processes(Task{Roots: []int{os.Getpid()}})
	if !ok || got.cpu <= 0 || got.memory < 100<<10 {
		t.Errorf("got %+v, %v; want the time of the child that has ended, and memory", got, ok)
	}
	own, ok := processes(Task{Container: os.Getpid()})
	if !ok || own.memory <= got.memory || own.cpu < got.cpu {
		t.Errorf("with this process itself %+v, want more than %+v", own, got)
	}
	if _, ok := processes(Task{Roots: []int{1 << 30}}); ok {
		t.Error("a process that is not there uses something")
	}
}

func BenchmarkProcesses(b *testing.B) {
	for b.Loop() {
		if _, ok := processes(Task{Container: os.Getpid()}); !ok {
			b.Fatal("nothing")
		}
	}
}
