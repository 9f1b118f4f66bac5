package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/command"
)

// fakeDocker is a daemon as docker's, as far as agents use it: its containers are
// its own children and outlive the clients that started them. A container's
// command runs on this machine itself.
type fakeDocker struct {
	t        *testing.T
	listener net.Listener
	work     sync.WaitGroup

	mu         sync.Mutex
	containers map[string]*fakeContainer
	images     map[string]bool   // that are here
	registry   map[string]string // what pulling an image says; "" and present: it comes
	slow       chan struct{}     // a pull waits for it, if there is one
	calls      [][]string
	logins     []string // configurations that pulls came with
}

type fakeContainer struct {
	labels  []string
	cmd     *exec.Cmd
	ended   chan struct{}
	code    int
	started time.Time
	oom     bool
}

// fakeCall is what a client sends first.
type fakeCall struct {
	Args []string
	Env  []string
}

// fakeFrame is what daemon and client say to each other afterwards.
type fakeFrame struct {
	Out    []byte
	Signal int
	Exit   *int
}

func newFakeDocker(t *testing.T, dir string) *fakeDocker {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	d := &fakeDocker{
		t: t, listener: l, containers: map[string]*fakeContainer{}, images: map[string]bool{}, registry: map[string]string{},
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' fake-docker '%s' \"$@\"\n", os.Args[0], socket)
	if err := writeProgram(filepath.Join(dir, "docker"), script); err != nil {
		t.Fatal(err)
	}
	d.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.work.Go(func() { d.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		d.mu.Lock()
		for _, c := range d.containers {
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		}
		d.mu.Unlock()
		d.work.Wait()
	})
	return d
}

// fakeDockerClient is the program docker.
func fakeDockerClient(socket string, args []string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Cannot connect to the Docker daemon:", err)
		return 1
	}
	out := json.NewEncoder(conn)
	if err := out.Encode(fakeCall{Args: args, Env: os.Environ()}); err != nil {
		return 125
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for range signals {
			_ = out.Encode(fakeFrame{Signal: int(syscall.SIGTERM)})
		}
	}()
	in := json.NewDecoder(bufio.NewReader(conn))
	for {
		var f fakeFrame
		if err := in.Decode(&f); err != nil {
			return 125
		}
		_, _ = os.Stdout.Write(f.Out)
		if f.Exit != nil {
			return *f.Exit
		}
	}
}

func (d *fakeDocker) serve(conn net.Conn) {
	defer conn.Close()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	var call fakeCall
	if err := in.Decode(&call); err != nil {
		return
	}
	d.mu.Lock()
	d.calls = append(d.calls, call.Args)
	d.mu.Unlock()
	code, text := d.do(call, in, out)
	_ = out.Encode(fakeFrame{Out: []byte(text), Exit: &code})
}

func (d *fakeDocker) do(call fakeCall, in *json.Decoder, out *json.Encoder) (int, string) {
	last := call.Args[len(call.Args)-1]
	switch strings.Join(call.Args[:min(2, len(call.Args))], " ") {
	case "info":
		return 0, "Server Version: fake\n"
	case "image inspect":
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.images[last] {
			return 0, "sha256:1\n"
		}
		return 1, "Error: No such image: " + last + "\n"
	case "pull --quiet":
		return d.pull(last, call.Env)
	case "ps --all":
		return 0, d.list(strings.TrimPrefix(last, "label="))
	case "rm --force":
		return d.remove(last)
	case "container inspect":
		return d.inspect(last)
	}
	switch call.Args[0] {
	case "run":
		return d.run(call, in, out)
	case "exec":
		return d.exec(call, out)
	}
	return 125, fmt.Sprintf("docker: unknown command %q\n", call.Args)
}

func (d *fakeDocker) pull(image string, env []string) (int, string) {
	login, _ := os.ReadFile(filepath.Join(command.Lookup(env, "DOCKER_CONFIG"), "config.json"))
	d.mu.Lock()
	d.logins = append(d.logins, string(login))
	says, known := d.registry[image]
	slow := d.slow
	d.mu.Unlock()
	if slow != nil {
		<-slow
	}
	switch {
	case !known:
		return 1, "Error response from daemon: manifest for " + image + " not found: manifest unknown\n"
	case says != "":
		return 1, says + "\n"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.images[image] = true
	return 0, image + "\n"
}

func (d *fakeDocker) list(label string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := ""
	for name, c := range d.containers {
		if slices.Contains(c.labels, label) {
			names += name + "\n"
		}
	}
	return names
}

func (d *fakeDocker) remove(name string) (int, string) {
	d.mu.Lock()
	c := d.containers[name]
	delete(d.containers, name)
	d.mu.Unlock()
	if c == nil {
		return 1, "Error response from daemon: No such container: " + name + "\n"
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	<-c.ended
	return 0, name + "\n"
}

func (d *fakeDocker) inspect(name string) (int, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.containers[name]
	if c == nil {
		return 1, "Error: No such container: " + name + "\n"
	}
	running, code := true, 0
	select {
	case <-c.ended: // it has no code before
		running, code = false, c.code
	default:
	}
	data, _ := json.Marshal(map[string]any{"Running": running, "OOMKilled": c.oom, "StartedAt": c.started, "ExitCode": code})
	return 0, string(data) + "\n"
}

// newFakeContainer reads the arguments of "docker run". It returns what is to be
// started, and its name.
func newFakeContainer(call fakeCall) (c *fakeContainer, name string, err error) {
	c = &fakeContainer{ended: make(chan struct{})}
	dir := "/"
	env := []string{"PATH=" + os.Getenv("PATH")}
	args := call.Args[1:]
	for ; strings.HasPrefix(args[0], "--"); args = args[1:] {
		if args[0] == "--privileged" || args[0] == "--init" {
			continue
		}
		switch args[0] {
		case "--env-file":
			data, err := os.ReadFile(args[1])
			if err != nil {
				return nil, "", err
			}
			env = append(env, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")...)
		case "--env":
			env = append(env, args[1]+"="+command.Lookup(call.Env, args[1]))
		case "--name":
			name = args[1]
		case "--label":
			c.labels = append(c.labels, args[1])
		case "--workdir":
			dir = args[1]
		}
		args = args[1:]
	}
	if args[0] == "broken" {
		return nil, "", errors.New("something is wrong with it")
	}
	c.oom = args[0] == "oom"
	c.cmd = exec.Command(args[1], args[2:]...)
	c.cmd.Dir, c.cmd.Env = dir, env
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c, name, nil
}

// run is "docker run" with those flags that agents give.
func (d *fakeDocker) run(call fakeCall, in *json.Decoder, out *json.Encoder) (int, string) {
	c, name, err := newFakeContainer(call)
	if err != nil {
		return 125, "docker: Error response from daemon: " + err.Error() + "\n"
	}
	r, w := io.Pipe()
	c.cmd.Stdout, c.cmd.Stderr = w, w
	c.cmd.WaitDelay = time.Second
	c.started = time.Now()
	d.mu.Lock()
	err = c.cmd.Start()
	if err == nil {
		d.containers[name] = c
	}
	d.mu.Unlock()
	if err != nil {
		return 127, "docker: " + err.Error() + "\n"
	}
	d.work.Go(func() {
		for {
			var f fakeFrame
			if err := in.Decode(&f); err != nil {
				return // the client is gone; the container stays
			}
			_ = syscall.Kill(c.cmd.Process.Pid, syscall.Signal(f.Signal))
		}
	})
	d.work.Go(func() {
		err := c.cmd.Wait()
		c.code = fakeExitCode(err)
		_ = w.Close() // never fails
		close(c.ended)
	})
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		_ = out.Encode(fakeFrame{Out: buffer[:n]})
		if err != nil {
			break
		}
	}
	<-c.ended
	return c.code, ""
}

func fakeExitCode(err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
