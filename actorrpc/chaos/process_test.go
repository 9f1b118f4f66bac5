package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a process may take for what it is told: the machines are slow.
const patience = 2 * time.Minute

// language is what a process is written in.
type language string

const (
	golang language = "go"
	python language = "python"
)

// What a process can be.
const (
	roleServer = "server"
	roleCaller = "caller"
)

const namespace = "chaos"

// envOrders has a process's orders, JSON of orders.
const envOrders = "FRAY_CHAOS_ORDERS"

// orders say what a process is to do. Both languages read them.
type orders struct {
	Executed  string   `json:"executed"` // file to which servers append a line for each call
	Produced  string   `json:"produced"` // likewise, for each item of a stream
	Outcomes  string   `json:"outcomes"` // and callers one for each that they made
	Received  string   `json:"received"` // likewise, for each item that they took
	Callers   []string `json:"callers"`  // of this process
	Actors    []string `json:"actors"`
	Seed      uint64   `json:"seed"`
	Keepalive float64  `json:"keepalive"` // seconds of silence after which a peer is asked for a word
	Patience  float64  `json:"patience"`  // and more, after which it is taken for dead
}

// process is one that was started. It is told what to do by lines, and answers each with one.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string // closed at its end
	ended  chan struct{}
	stderr *tail
	asking sync.Mutex
}

// start runs a role in a language; attempt is the token that it registers with.
func start(w *world, l language, role, attempt string, o orders) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	if l == python {
		cmd = exec.Command(w.python, filepath.Join(w.programs, "chaos_"+role+".py"))
	}
	cmd.Env = append(os.Environ(), envRole+"="+role, envOrders+"="+string(text), "FRAY_ACTOR_IDENTITY="+w.identity)
	cmd.Env = append(cmd.Env, w.registry.Environment(attempt, 0)...)
	p := &process{name: role + " " + attempt + " in " + string(l), cmd: cmd, lines: make(chan string, 16), ended: make(chan struct{}), stderr: &tail{}}
	cmd.Stderr = p.stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.started = append(w.started, p)
	w.mu.Unlock()
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// heard is the next line of the process, which must begin so; the rest is returned.
func (p *process) heard(want string) (string, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case line, ok := <-p.lines:
		rest, found := strings.CutPrefix(line, want)
		if !ok || !found {
			return "", fmt.Errorf("the process said %q, want %q\n%s", line, want, p.stderr)
		}
		return strings.TrimSpace(rest), nil
	case <-limit.C:
		return "", fmt.Errorf("the process did not say %q in time\n%s", want, p.stderr)
	}
}

// ask gives an order and returns what was answered, which must begin so.
func (p *process) ask(order, want string) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if _, err := fmt.Fprintln(p.stdin, order); err != nil {
		return "", fmt.Errorf("order %q: %w\n%s", order, err, p.stderr)
	}
	text, err := p.heard(want)
	if err != nil {
		return "", fmt.Errorf("order %q: %w", order, err)
	}
	return text, nil
}

// broken is what the process says of faults of its own, "" if nothing.
func (p *process) broken() string {
	text := p.stderr.String()
	for _, sign := range []string{"DATA RACE", "panic:", "Traceback (most recent call last)"} {
		if strings.Contains(text, sign) {
			return text
		}
	}
	return ""
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process, also one that is stopped.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.lines { // so that its reader ends
		continue
	}
	<-p.ended
}

// leave waits until the process has ended by itself.
func (p *process) leave() error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	lines := p.lines
	for {
		select {
		case _, open := <-lines:
			if !open {
				lines = nil
			}
		case <-p.ended:
			if code := p.cmd.ProcessState.ExitCode(); code != 0 {
				return fmt.Errorf("exit status is %s, want 0\n%s", p.cmd.ProcessState, p.stderr)
			}
			return nil
		case <-limit.C:
			p.signal(syscall.SIGQUIT) // which has it say what its threads do
			<-time.After(time.Second)
			return errors.New("it did not end in time\n" + p.stderr.String())
		}
	}
}

// usage is what a process may leak. Threads are those of Python, goroutines of Go.
type usage struct{ threads, descriptors int }

func (u usage) String() string { return fmt.Sprintf("%d %d", u.threads, u.descriptors) }

func usageOf(text string) (u usage, err error) {
	_, err = fmt.Sscan(text, &u.threads, &u.descriptors)
	return u, err
}

// settles waits until a process uses no more than before, but for what is made once.
func (p *process) settles(before usage) error {
	const once = 10
	end := time.Now().Add(patience)
	for {
		text, err := p.ask("usage", "usage")
		if err != nil {
			return err
		}
		now, err := usageOf(text)
		if err != nil {
			return err
		}
		if now.threads <= before.threads+once && now.descriptors <= before.descriptors+once {
			return nil
		}
		if time.Now().After(end) {
			p.signal(syscall.SIGQUIT) // Go programs say what their goroutines do
			return fmt.Errorf("threads and descriptors are %s, and were %s", now, before)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// tail keeps the end of what a process writes.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - 64<<10; extra > 0 {
		t.text = append([]byte(nil), t.text[extra:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
