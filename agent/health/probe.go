package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/schema"
)

// Target is where a task answers.
type Target struct {
	Address   string         // of its host
	Simulated bool           // the host shares this machine's loopback address with others
	Ports     map[string]int // numbers of the task's ports
	Declared  []schema.Port
	// Command makes the command of a check that runs one, in the task's environment.
	Command func(ctx context.Context, argv []string) (*exec.Cmd, error)
}

// Check returns what one health check does. An error that is not about the
// task (it is cut short, for example) still counts as a failed check.
func (t Target) Check(h schema.Health) func(context.Context) error {
	if len(h.Exec) > 0 {
		return func(ctx context.Context) error {
			cmd, err := t.Command(ctx, h.Exec)
			if err != nil {
				return err
			}
			return probeCommand(ctx, cmd, h.Exec[0])
		}
	}
	hosts, port, err := t.addresses(h.Port)
	if err != nil {
		return func(context.Context) error { return err }
	}
	probe := probeTCP
	if !h.TCP {
		path := h.HTTP
		probe = func(ctx context.Context, address string) error { return probeHTTP(ctx, address, path) }
	}
	return func(ctx context.Context) error {
		var first error
		for _, host := range hosts {
			err := probe(ctx, net.JoinHostPort(host, port))
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
		return first
	}
}

// addresses are where a task should answer: on its host's address, or on this
// machine's loopback address, which is all that some programs bind. A simulated host
// shares the latter with others, so there it is only asked at a port that the
// agent picked, which no other host has.
func (t Target) addresses(port string) (hosts []string, number string, err error) {
	hosts = []string{t.Address}
	own := !t.Simulated
	if n, ok := t.Ports[port]; ok {
		number = strconv.Itoa(n)
		for _, p := range t.Declared {
			own = own || p.Name == port && p.Number == 0
		}
	} else if n, err := strconv.Atoi(port); err == nil && n > 0 {
		number = port
	} else {
		return nil, "", fmt.Errorf("the job has no port %q", port)
	}
	if own && t.Address != "127.0.0.1" {
		hosts = append(hosts, "127.0.0.1")
	}
	return hosts, number, nil
}

func probeTCP(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, cause(err))
	}
	conn.Close()
	return nil
}

func probeHTTP(ctx context.Context, address, path string) error {
	url := "http://" + address + "/" + strings.TrimPrefix(path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // an answer, and from the task itself
		},
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, cause(err))
	}
	response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("GET %s: %d", url, response.StatusCode)
	}
	return nil
}

// cause is the part of a network error that helps people.
func cause(err error) error {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	}
	return err
}

// probeCommand runs what checks a task's health. name is what people know it by.
func probeCommand(ctx context.Context, cmd *exec.Cmd, name string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return process.Signal(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: no answer in time", name)
	}
	if err != nil {
		if last := command.LastLines(string(output), 1); len(last) > 0 {
			return fmt.Errorf("%s: %w: %s", name, err, last[0])
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
