package across

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// language is what a process is written in.
type language string

const (
	golang language = "go"
	python language = "python"
)

func languages() []language { return []language{golang, python} }

// process is one that a test started. It says lines of JSON.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan []byte // closed at its end
	ended  chan struct{}
	stderr bytes.Buffer // to be read after its end
	once   sync.Once
}

func start(t *testing.T, l language, o orders, environment ...string) *process {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: command(t, l), lines: make(chan []byte, 1), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append(environment, envOrders+"="+string(text))...)
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s := bufio.NewScanner(out)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			p.lines <- bytes.Clone(s.Bytes())
		}
		close(p.lines)
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

// command is what is run for a language: the binary of the tests, or the interpreter of this checkout.
func command(t *testing.T, l language) *exec.Cmd {
	t.Helper()
	if l == golang {
		return exec.Command(os.Args[0])
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(here, "..", "..", "python")
	interpreter := filepath.Join(top, ".venv", "bin", "python")
	if _, err := exec.LookPath(interpreter); err != nil {
		t.Skip("there is no environment for Python: run scripts/python-env first")
	}
	return exec.Command(interpreter, filepath.Join(top, "tests", "across.py"))
}

// hear is the next line of the process.
func (p *process) hear(t *testing.T, into any) {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.ended
			t.Fatalf("the process ended: %s\n%s", p.cmd.ProcessState, p.stderr.String())
		}
		if err := json.Unmarshal(line, into); err != nil {
			t.Fatalf("the process said %s: %v", line, err)
		}
	case <-time.After(patience):
		p.kill()
		t.Fatalf("the process said nothing\n%s", p.stderr.String())
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		for range p.lines { // so that its reader ends
			continue
		}
		<-p.ended
	})
}

// server is a process that hosts the actors "subject" and "other".
type server struct {
	*process
	address  string
	language language
}

// maxMessage is the limit of the servers, in bytes.
const maxMessage = 1 << 20

func startServer(t *testing.T, l language, port int, environment ...string) *server {
	t.Helper()
	return startServing(t, l, orders{Port: port}, environment...)
}

// startServing starts a server that hosts more, or at a port.
func startServing(t *testing.T, l language, o orders, environment ...string) *server {
	t.Helper()
	o.Role, o.Namespace, o.Max = "server", "across", cmp.Or(o.Max, maxMessage)
	s := &server{process: start(t, l, o, environment...), language: l}
	s.hear(t, &s.address)
	return s
}

// leave has the server end by itself: no caller listens any more.
func (s *server) leave(t *testing.T) {
	t.Helper()
	if err := s.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.kill()
		t.Fatalf("%s did not end\n%s", s, s.stderr.String())
	}
}

func (s *server) port(t *testing.T) int {
	t.Helper()
	_, text, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// pairs runs a test for each caller and each server.
func pairs(t *testing.T, run func(t *testing.T, c caller, s *server), environment ...string) {
	t.Helper()
	for _, served := range languages() {
		t.Run("to "+string(served), func(t *testing.T) {
			s := startServer(t, served, 0, environment...)
			for _, calling := range languages() {
				t.Run("from "+string(calling), func(t *testing.T) { run(t, newCaller(t, calling), s) })
			}
		})
	}
}

func (s *server) String() string { return fmt.Sprintf("server in %s at %s", s.language, s.address) }
