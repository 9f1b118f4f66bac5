package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// container is what a task runs in where its job names an image. The program
// that the shim runs is then the container runtime's client, which stays in the
// foreground: its output, its end and the signals that it gets are the task's.
// What the client leaves behind when it is killed is found by name.
type container struct {
	Runtime string `json:"runtime"` // path of docker or podman
	Name    string `json:"name"`
}

// labelHost marks the containers of one host, by its directory; labelTask says
// of which start of which task they are, for people.
const (
	labelHost = "fray-host"
	labelTask = "fray-task"
)

// hostMark is the value of labelHost.
func (d *hostDir) hostMark() string {
	sum := sha256.Sum256([]byte(d.path))
	return hex.EncodeToString(sum[:8])
}

// runtimePatience bounds a question to a container runtime.
const runtimePatience = 30 * time.Second

// findRuntime returns the container runtime of this host: one that works, docker
// before podman.
func findRuntime(ctx context.Context) (string, error) {
	var why []string
	for _, name := range []string{"docker", "podman"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		output, err := runtimeOutput(ctx, program, "info")
		if err == nil {
			return program, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		why = append(why, fmt.Sprintf("%s does not work: %s", name, lastLine(output, err)))
	}
	if why != nil {
		return "", errors.New(strings.Join(why, "; "))
	}
	return "", errors.New("this host has neither docker nor podman; use a boot image that has one, or remove environment.image")
}

// runtimeOutput runs a command of a container runtime that takes no time.
func runtimeOutput(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = "/", withoutFray(os.Environ())
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// lastLine is the last thing a program said, or else how it ended.
func lastLine(output string, err error) string {
	if last := lastLines(strings.ToValidUTF8(output, "�"), 1); len(last) > 0 {
		return last[0]
	}
	return err.Error()
}

// prepareContainer makes the image ready, ends what earlier tasks have left, and
// returns what the shim must run.
func (t *task) prepareContainer(ctx context.Context) (*shimSpec, error) {
	image := t.run.Spec.Environment.Image
	runtime, err := findRuntime(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &endError{state: schema.TaskUnschedulable, reason: "environment.image cannot be used: " + err.Error()}
	}
	t.in.Container = &container{Runtime: runtime, Name: "fray-" + t.in.Key + "-" + t.in.Nonce}
	if err := t.removeOldContainers(ctx); err != nil {
		return nil, err
	}
	t.set(func(r *state.TaskReport) { r.State, r.Reason = schema.TaskBuilding, "pulling "+image })
	if err := t.pull(ctx, image); err != nil {
		return nil, err
	}
	t.set(func(r *state.TaskReport) { r.Reason = "" })
	return t.containerSpec()
}

// removeOldContainers ends what earlier tasks of this host have left: a host runs
// one task.
func (t *task) removeOldContainers(ctx context.Context) error {
	runtime := t.in.Container.Runtime
	output, err := runtimeOutput(ctx, runtime, "ps", "--all", "--quiet", "--filter", "label="+labelHost+"="+t.agent.dir.hostMark())
	if err != nil {
		return fmt.Errorf("list containers: %s", lastLine(output, err))
	}
	for id := range strings.FieldsSeq(output) {
		if err := removeContainer(ctx, container{Runtime: runtime, Name: id}); err != nil {
			return err
		}
	}
	return nil
}

// removeContainer ends a container and everything in it; one that is not there
// is no error.
func removeContainer(ctx context.Context, c container) error {
	output, err := runtimeOutput(ctx, c.Runtime, "rm", "--force", "--volumes", c.Name)
	if err != nil && !isNoContainer(output) {
		return fmt.Errorf("remove container %s: %s", c.Name, lastLine(output, err))
	}
	return nil
}

func isNoContainer(output string) bool {
	output = strings.ToLower(output)
	return strings.Contains(output, "no such container") || strings.Contains(output, "no container with name or id")
}

// containerSpec is what the shim runs: the runtime's client. The task's variables
// reach it by a file, and those of several lines by its own environment: a list
// of arguments is everybody's to read.
func (t *task) containerSpec() (*shimSpec, error) {
	env, err := taskEnv(t.setting())
	if err != nil {
		return nil, err
	}
	command, err := revealAll(t.run.Spec.Command, t.agent.Sealer)
	if err != nil {
		return nil, &endError{state: schema.TaskFailed, reason: err.Error()}
	}
	if lookupEnv(env, "XDG_CACHE_HOME") == "" { // what programs keep there is warm for the next task
		env = append(env, "XDG_CACHE_HOME="+t.agent.CacheDir)
	}
	own := append(withoutFray(os.Environ()), nonceEnv+"="+t.in.Nonce)
	var lines, names []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if strings.Contains(entry, "\n") {
			names, own = append(names, "--env", name), append(own, entry)
			continue
		}
		lines = append(lines, entry+"\n")
	}
	file := t.dir.file(envFile)
	for _, dir := range []string{string(t.dir), t.agent.CacheDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("prepare container: %w", err)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return nil, fmt.Errorf("prepare container: %w", err)
	}
	argv := slices.Concat([]string{t.in.Container.Runtime, "run", "--env-file", file}, names, t.containerFlags(),
		[]string{t.run.Spec.Environment.Image}, command)
	return &shimSpec{
		HostDir: t.agent.dir.path, TaskDir: t.dir, Nonce: t.in.Nonce, Grace: t.in.Grace,
		Path: t.in.Container.Runtime, Argv: argv, Env: own, WorkDir: t.agent.dir.path,
	}, nil
}

// containerFlags say how a task's container is made: it shares the host's network
// and user, so that a task finds there what it would find outside. A TPU's
// devices need a privileged one, and locked memory
// (cloud.google.com/tpu/docs/run-in-container).
func (t *task) containerFlags() []string {
	flags := []string{
		"--name", t.in.Container.Name,
		"--label", labelHost + "=" + t.agent.dir.hostMark(), "--label", labelTask + "=" + t.in.Key,
		"--pull", "never", "--log-driver", "none",
		"--stop-timeout", "0", // the grace is over when it is removed
		"--network", "host", "--shm-size", "100g",
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		"--volume", t.agent.CacheDir + ":" + t.agent.CacheDir,
	}
	if t.in.TPU {
		flags = append(flags, "--privileged", "--ulimit", "memlock=68719476736")
	}
	if hasInit(t.in.Container.Runtime) {
		flags = append(flags, "--init") // else what has no handler ignores SIGTERM
	}
	if t.run.Spec.Environment.Callable != "" {
		callables := t.agent.dir.file(callablesDir)
		flags = append(flags, "--volume", callables+":"+callables+":ro")
	}
	if file := t.identity(); file != "" {
		// The directory, since the file is replaced when authorities come and go.
		dir := filepath.Dir(file)
		flags = append(flags, "--volume", dir+":"+dir+":ro")
	}
	ends := t.dir.file(terminationDir)
	flags = append(flags, "--volume", ends+":"+ends)
	if t.run.Spec.Environment.Bundle != "" {
		flags = append(flags, "--volume", t.in.WorkDir+":"+t.in.WorkDir, "--workdir", t.in.WorkDir)
	}
	return flags
}

// hasInit reports whether the runtime can put an init before a command. Docker
// brings its own; podman's is a package that may be missing.
func hasInit(runtime string) bool {
	if filepath.Base(runtime) != "podman" {
		return true
	}
	for _, file := range []string{"/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit", "/usr/local/libexec/podman/catatonit", "/usr/bin/catatonit"} {
		if executable(file) == nil {
			return true
		}
	}
	return false
}
