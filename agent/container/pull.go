package container

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/schema"
)

// Puller pulls images for one host.
type Puller struct {
	Runtime string // path of docker or podman
	Dir     *hostdir.Dir
	// Token returns a password for a registry and its user; nil: the runtime has what it needs.
	Token func(ctx context.Context, registry string) (user, password string, err error)
	Log   *slog.Logger
}

// Pull makes an image ready. One that is named by its digest and is here need
// not come again; one that cannot be had anew is used as it is here.
func (p Puller) Pull(ctx context.Context, image string) (err error) {
	program := p.Runtime
	_, err = runtimeOutput(ctx, program, "image", "inspect", "--format", "{{.Id}}", image)
	here := err == nil
	if here && strings.Contains(image, "@sha256:") {
		return nil
	}
	login, err := p.login(ctx, image)
	if err != nil {
		return err
	}
	if login != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(login)) }()
	}
	output, err := p.run(ctx, image, login)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case here:
		p.Log.Warn("image not pulled; using the one that is here", "image", image, "error", command.LastLine(output, err))
		return nil
	}
	end := &outcome.Early{
		State:  schema.TaskWorkerFailed,
		Reason: fmt.Sprintf("pull %s: %s", image, command.LastLine(output, err)),
		Output: output,
	}
	if isImagesFault(output) {
		end.State = schema.TaskFailed
	}
	if login == "" && isRejected(output) {
		end.Reason += "; fray logs in at Google's registries only: copy the image to Artifact Registry or let a remote repository of it fetch the image, or use a boot_image that is logged in"
	}
	return end
}

// isRejected reports whether a registry does not let the host have an image.
func isRejected(output string) bool {
	output = strings.ToLower(output)
	return slices.ContainsFunc([]string{"denied", "unauthorized", "authentication required", "no basic auth credentials"}, func(pattern string) bool {
		return strings.Contains(output, pattern)
	})
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
func (p Puller) login(ctx context.Context, image string) (string, error) {
	registry := registryOf(image)
	if p.Token == nil || registry == "" {
		return "", nil
	}
	user, password, err := p.Token(ctx, registry)
	if err != nil {
		return "", fmt.Errorf("log in at %s: %w", registry, err)
	}
	if password == "" {
		return "", nil
	}
	if err := hostdir.RemoveAll(p.Dir.File(".login-*")); err != nil {
		return "", fmt.Errorf("log in at %s: %w", registry, err) // left by an agent that died
	}
	dir, err := os.MkdirTemp(p.Dir.Path, ".login-*")
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

// run pulls an image; it ends with ctx, and with the agent.
func (p Puller) run(ctx context.Context, image, login string) (string, error) {
	env := command.WithoutFray(os.Environ())
	if login != "" { // docker reads the first, podman the second
		env = append(env, "DOCKER_CONFIG="+login, "REGISTRY_AUTH_FILE="+filepath.Join(login, "config.json"))
	}
	return command.Run(ctx, []string{p.Runtime, "pull", "--quiet", image}, env)
}
