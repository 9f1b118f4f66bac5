package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/schema"
)

// prepareUV returns the uv environment that the job asks for. Environments are
// named by what they follow from, built once for all hosts of the machine, and
// kept: the next task that needs the same one starts at once.
//
// An environment holds the project's dependencies but not the project, which is
// found through PYTHONPATH instead: it differs from bundle to bundle and must
// not be tied to another host's directory.
func (t *task) prepareUV(ctx context.Context) (string, error) {
	uv := t.run.Spec.Environment.UV
	content := t.run.Spec.Environment.Bundle
	if content == "" {
		content = t.in.WorkDir
	}
	key, err := uvKey(t.in.WorkDir, content, *uv)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &endError{
			state:  schema.TaskFailed,
			reason: fmt.Sprintf("environment.uv needs pyproject.toml and uv.lock in the project: %v; uv init and uv lock make them", err),
		}
	}
	if err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	venv := filepath.Join(t.agent.CacheDir, "uv", key)
	if uvBuilt(venv) {
		return venv, nil
	}
	t.building()
	program, err := t.findUV(ctx)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(venv), 0o700); err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	lock, err := waitLock(ctx, venv+".lock")
	if err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	defer lock.Close()
	if uvBuilt(venv) {
		return venv, nil // by another host, while this one waited
	}
	if err := os.RemoveAll(venv); err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	if err := t.runUV(ctx, append([]string{program}, uvArgs(*uv)...), venv, lock); err != nil {
		return "", err
	}
	err = syncFileSystem(venv)
	if err == nil {
		err = treeOps{sync: func(string) error { return nil }}.seal(venv, recordOf(venv)) // all of it is synced
	}
	if err == nil {
		err = writeJSON(venv+".built", struct{}{})
	}
	if err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	return venv, nil
}

// uvBuilt reports whether an environment is complete, as it was built, and its
// Python still there.
func uvBuilt(venv string) bool {
	_, err := os.Stat(venv + ".built")
	if err == nil {
		_, err = os.Stat(filepath.Join(venv, "bin", "python"))
	}
	return err == nil && treeWhole(venv)
}

// localSource finds in a lock file what is installed from a directory or a file
// of the project, the project itself left out.
const localSource = `(?m)^\s*source = \{ (?:editable|directory|path) = "([^"]*)"`

// uvKey names the environment of a project by everything it follows from.
// Content stands for all of the project's files.
func uvKey(dir, content string, uv schema.UV) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"uv.lock", "pyproject.toml", "uv.toml", ".python-version"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		optional := name != "uv.lock" && name != "pyproject.toml"
		if optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s\n", name, len(data), data)
		if name == "uv.lock" && hasLocalSources(data) {
			// Their content counts too, and it is in no lock file.
			fmt.Fprintf(hash, "of %s\n", content)
		}
	}
	request, err := json.Marshal(uv)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(hash, "%s %s/%s", request, runtime.GOOS, runtime.GOARCH)
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

func hasLocalSources(lock []byte) bool {
	found := regexp.MustCompile(localSource).FindAllSubmatch(lock, -1)
	return slices.ContainsFunc(found, func(match [][]byte) bool { return string(match[1]) != "." })
}

func uvArgs(uv schema.UV) []string {
	args := []string{"sync", "--frozen", "--no-install-project", "--no-editable", "--no-progress"}
	if !slices.Contains(uv.Groups, "dev") {
		args = append(args, "--no-dev")
	}
	for _, extra := range uv.Extras {
		args = append(args, "--extra", extra)
	}
	for _, group := range uv.Groups {
		args = append(args, "--group", group)
	}
	if uv.Python != "" {
		args = append(args, "--python", uv.Python)
	}
	return args
}

// runUV runs uv in the task's environment, which may hold what an index asks
// for. It shares the lock with uv, so that the lock is held until uv is gone
// even if this agent dies before.
func (t *task) runUV(ctx context.Context, argv []string, venv string, lock *os.File) error {
	env, err := t.environment()
	if err != nil {
		return err
	}
	build := buildRecord{Nonce: t.in.Nonce}
	if err := errors.Join(t.agent.dir.markDirty(), writeJSON(t.agent.dir.file(buildFile), build)); err != nil {
		return fmt.Errorf("prepare uv environment: %w", err)
	}
	// A child with a death signal follows the thread that made it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = t.in.WorkDir
	cmd.Env = append(env, "UV_PROJECT_ENVIRONMENT="+venv, "VIRTUAL_ENV="+venv, "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return signalProcess(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if endErr := t.agent.endBuild(build); endErr != nil {
		return endErr
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	text := strings.ToValidUTF8(output.String(), "�")
	state := schema.TaskWorkerFailed
	if isProjectsFault(text) {
		state = schema.TaskFailed
	}
	return &endError{
		state:  state,
		reason: fmt.Sprintf("uv sync: %v: %s", err, strings.Join(lastLines(text, 3), "; ")),
		output: text,
	}
}

// endBuild ends what is left of the preparation of a task.
func (a *agent) endBuild(build buildRecord) error {
	if err := sweep(processRecord{}, build.Nonce); err != nil {
		return err
	}
	if err := os.Remove(a.dir.file(buildFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("end preparation: %w", err)
	}
	return nil
}

// isProjectsFault reports whether uv complains of the project rather than of
// the host or the network.
func isProjectsFault(output string) bool {
	return slices.ContainsFunc([]string{
		"Unable to find lockfile",
		"needs to be updated",
		"is not defined in the",
		"Failed to parse",
		"No solution found",
		"is incompatible with the project's Python requirement",
		"doesn't have a source distribution or wheel for the current platform",
		"No `pyproject.toml` found",
	}, func(pattern string) bool { return strings.Contains(output, pattern) })
}
