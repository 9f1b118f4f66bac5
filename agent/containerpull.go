package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/schema"
)

// pull makes an image ready. One that is named by its digest and is here need
// not come again; one that cannot be had anew is used as it is here.
func (t *task) pull(ctx context.Context, image string) (err error) {
	program := t.in.Container.Runtime
	_, err = runtimeOutput(ctx, program, "image", "inspect", "--format", "{{.Id}}", image)
	here := err == nil
	if here && strings.Contains(image, "@sha256:") {
		return nil
	}
	login, err := t.login(ctx, image)
	if err != nil {
		return err
	}
	if login != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(login)) }()
	}
	output, err := t.runPull(ctx, image, login)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case here:
		t.agent.Log.Warn("image not pulled; using the one that is here", "image", image, "error", lastLine(output, err))
		return nil
	}
	end := &endError{
		state:  schema.TaskWorkerFailed,
		reason: fmt.Sprintf("pull %s: %s", image, lastLine(output, err)),
		output: output,
	}
	if isImagesFault(output) {
		end.state = schema.TaskFailed
	}
	return end
}

// isImagesFault reports whether a runtime complains of the image, or of rights,
// rather than of the host or the network.
func isImagesFault(output string) bool {
	output = strings.ToLower(output)
	return slices.ContainsFunc([]string{
		"manifest unknown", "not found", "name unknown", "invalid reference", "denied", "unauthorized",
		"no matching manifest", "repository name must be", "short-name",
	}, func(pattern string) bool { return strings.Contains(output, pattern) })
}

// registryOf is the registry that an image comes from, "" for the runtime's own.
func registryOf(image string) string {
	host, _, ok := strings.Cut(image, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return ""
	}
	return host
}

// login makes a directory with the runtime's configuration for one pull, "" where
// none is needed. Who pulls by a machine's identity leaves nothing of it behind.
func (t *task) login(ctx context.Context, image string) (string, error) {
	registry := registryOf(image)
	if t.agent.RegistryToken == nil || registry == "" {
		return "", nil
	}
	user, password, err := t.agent.RegistryToken(ctx, registry)
	if err != nil {
		return "", fmt.Errorf("log in at %s: %w", registry, err)
	}
	if password == "" {
		return "", nil
	}
	if err := removeAll(t.agent.dir.file(".login-*")); err != nil {
		return "", fmt.Errorf("log in at %s: %w", registry, err) // left by an agent that died
	}
	dir, err := os.MkdirTemp(t.agent.dir.path, ".login-*")
	if err != nil {
		return "", fmt.Errorf("log in at %s: %w", registry, err)
	}
	type auth struct {
		Auth string `json:"auth"`
	}
	data, err := json.Marshal(map[string]map[string]auth{
		"auths": {registry: {Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("log in at %s: %w", registry, err), os.RemoveAll(dir))
	}
	return dir, nil
}

// runPull pulls an image; it ends with ctx, and with the agent.
func (t *task) runPull(ctx context.Context, image, login string) (string, error) {
	env := withoutFray(os.Environ())
	if login != "" { // docker reads the first, podman the second
		env = append(env, "DOCKER_CONFIG="+login, "REGISTRY_AUTH_FILE="+filepath.Join(login, "config.json"))
	}
	return runTool(ctx, []string{t.in.Container.Runtime, "pull", "--quiet", image}, env)
}

// runTool runs a program that may take its time, and returns what it wrote. It
// ends with ctx, and with the agent.
func runTool(ctx context.Context, argv, env []string) (string, error) {
	// A child with a death signal follows the thread that made it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", env
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return signalProcess(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return output.String(), err
}
