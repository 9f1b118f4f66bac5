package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/sleep"
)

// AbsentError means that a host has no container runtime.
type AbsentError struct{}

func (*AbsentError) Error() string {
	return "this host has neither docker nor podman; use a boot image that has one, or remove environment.image"
}

// DownError means that a host's container runtimes do not work, though one was started
// and waited for.
type DownError struct {
	why    []string // of each
	waited time.Duration
}

func (e *DownError) Error() string {
	return fmt.Sprintf("%s, %s after it was started", strings.Join(e.why, "; "), e.waited)
}

// Finder finds the container runtime of a host.
type Finder struct {
	// Patience bounds the wait for a runtime that is installed; 0: 3 min. That of a
	// machine which has just booted may come up after the agent.
	Patience time.Duration
	Waiting  func(program string) // is called once when one is waited for; may be nil
	interval time.Duration        // between two attempts; 0: 1 s
}

// Find returns a runtime that works, docker before podman. If none does, it starts
// docker's service and waits. The error is of type AbsentError or DownError.
func (f Finder) Find(ctx context.Context) (string, error) {
	var programs []string
	for _, name := range []string{"docker", "podman"} {
		if program, err := exec.LookPath(name); err == nil {
			programs = append(programs, program)
		}
	}
	if len(programs) == 0 {
		return "", &AbsentError{}
	}
	program, _ := working(ctx, programs)
	if program != "" || ctx.Err() != nil {
		return program, context.Cause(ctx)
	}
	return f.await(ctx, programs)
}

// await starts what can be started and waits until a runtime works.
func (f Finder) await(ctx context.Context, programs []string) (string, error) {
	name := filepath.Base(programs[0])
	if f.Waiting != nil {
		f.Waiting(name)
	}
	patience, interval := f.Patience, f.interval
	if patience == 0 {
		patience = 3 * time.Minute
	}
	if interval == 0 {
		interval = time.Second
	}
	patient, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it takes too long"))
	defer cancel()
	startService(patient, name)
	for {
		program, why := working(ctx, programs)
		switch {
		case program != "":
			return program, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case !sleep.For(patient, interval):
			return "", &DownError{why: why, waited: patience}
		}
	}
}

// working is the first runtime that works, or why none does.
func working(ctx context.Context, programs []string) (program string, why []string) {
	for _, program := range programs {
		output, err := runtimeOutput(ctx, program, "info")
		if err == nil {
			return program, nil
		}
		why = append(why, fmt.Sprintf("%s does not work: %s", filepath.Base(program), command.LastLine(output, err)))
	}
	return "", why
}

// startService asks the system to start a service. Whether it comes up is seen by its client.
func startService(ctx context.Context, name string) {
	for _, argv := range [][]string{{"systemctl", "start", name}, {"service", name, "start"}} {
		program, err := exec.LookPath(argv[0])
		if err != nil {
			continue
		}
		if _, err := command.Run(ctx, append([]string{program}, argv[1:]...), command.WithoutFray(os.Environ())); err == nil {
			return
		}
	}
}
