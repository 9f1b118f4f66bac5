package container

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
)

// labelHost marks the containers of one host, by its directory; labelTask is
// which start of which task they are, for people.
const (
	labelHost = "fray-host"
	labelTask = "fray-task"
)

// runtimePatience bounds a short command of a container runtime.
const runtimePatience = 30 * time.Second

// runtimeOutput runs a command of a container runtime that takes no time.
func runtimeOutput(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = "/", command.WithoutFray(os.Environ())
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// RemoveOld removes the containers that earlier tasks of a host have left: a host
// runs one task.
func RemoveOld(ctx context.Context, runtime, hostMark string) error {
	output, err := runtimeOutput(ctx, runtime, "ps", "--all", "--quiet", "--filter", "label="+labelHost+"="+hostMark)
	if err != nil {
		return fmt.Errorf("list containers: %s", command.LastLine(output, err))
	}
	for id := range strings.FieldsSeq(output) {
		if err := Remove(ctx, hostdir.Container{Runtime: runtime, Name: id}); err != nil {
			return err
		}
	}
	return nil
}

// Remove ends a container and everything in it; one that is not there
// is no error.
func Remove(ctx context.Context, c hostdir.Container) error {
	output, err := runtimeOutput(ctx, c.Runtime, "rm", "--force", "--volumes", c.Name)
	if err != nil && !isNoContainer(output) {
		return fmt.Errorf("remove container %s: %s", c.Name, command.LastLine(output, err))
	}
	return nil
}

func isNoContainer(output string) bool {
	output = strings.ToLower(output)
	return strings.Contains(output, "no such container") || strings.Contains(output, "no container with name or id")
}

// Running reports whether a container runs: that is a moment after its client does.
func Running(ctx context.Context, c hostdir.Container) bool {
	output, err := runtimeOutput(ctx, c.Runtime, "container", "inspect", "--format", "{{json .State}}", c.Name)
	var state struct{ Running bool }
	return err == nil && json.Unmarshal([]byte(output), &state) == nil && state.Running
}

// ExecArgs is a command line that runs a command in a container by the runtime's
// client. The nonce marks its processes there, which outlive their client.
func ExecArgs(c hostdir.Container, command []string, nonce string, tty bool, term string) []string {
	argv := []string{c.Runtime, "exec", "--interactive", "--env", process.NonceEnv + "=" + nonce}
	if tty {
		argv = append(argv, "--tty")
		if term != "" {
			argv = append(argv, "--env", "TERM="+term)
		}
	}
	return slices.Concat(argv, []string{c.Name}, command)
}

// HookArgs is a command line that runs a hook in a container by the runtime's client. At vars
// it takes further variables, each as "--env", "NAME=VALUE".
func HookArgs(c hostdir.Container, command []string, nonce string) (argv []string, vars int) {
	argv = []string{c.Runtime, "exec", "--env", process.NonceEnv + "=" + nonce}
	return slices.Concat(argv, []string{c.Name}, command), len(argv)
}
