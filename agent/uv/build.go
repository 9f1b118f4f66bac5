package uv

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

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/outcome"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/tree"
	"github.com/fray-ml/fray/schema"
)

// Builder makes the uv environment of one task.
type Builder struct {
	Project   string // the task's working directory
	Content   string // stands for all files of the project
	UV        schema.UV
	CacheDir  string // where environments are kept
	Nonce     string // of the task's processes
	Simulated bool   // nothing may be installed on this machine
	Dir       *hostdir.Dir
	Env       func() ([]string, error) // environment of the task without the one that is built
	Building  func(reason string)      // reports that it takes time
}

// Build returns the directory of the environment. Environments are
// named by what they follow from, built once for all hosts of the machine, and
// kept: the next task that needs the same one starts at once.
//
// An environment holds the project's dependencies but not the project, which is
// found through PYTHONPATH instead: it differs from bundle to bundle and must
// not be tied to another host's directory.
func (b Builder) Build(ctx context.Context) (string, error) {
	key, err := keyOf(b.Project, b.Content, b.UV)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &outcome.Early{
			State:  schema.TaskFailed,
			Reason: fmt.Sprintf("environment.uv needs pyproject.toml and uv.lock in the project: %v; uv init and uv lock make them", err),
		}
	}
	if err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	venv := filepath.Join(b.CacheDir, "uv", key)
	if built(venv) {
		return venv, nil
	}
	b.Building("")
	program, err := b.find(ctx)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(venv), 0o700); err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	lock, err := hostdir.WaitLock(ctx, venv+".lock")
	if err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	defer lock.Close()
	if built(venv) {
		return venv, nil // by another host, while this one waited
	}
	if err := os.RemoveAll(venv); err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	if err := b.run(ctx, append([]string{program}, argsOf(b.UV)...), venv, lock); err != nil {
		return "", err
	}
	err = tree.SyncFileSystem(venv)
	if err == nil {
		err = tree.SealSynced(venv)
	}
	if err == nil {
		err = record.WriteJSON(venv+".built", struct{}{})
	}
	if err != nil {
		return "", fmt.Errorf("prepare uv environment: %w", err)
	}
	return venv, nil
}

// built reports whether an environment is complete, as it was built, and its
// Python still there.
func built(venv string) bool {
	_, err := os.Stat(venv + ".built")
	if err == nil {
		_, err = os.Stat(filepath.Join(venv, "bin", "python"))
	}
	return err == nil && tree.Whole(venv)
}

// localSource finds in a lock file what is installed from a directory or a file
// of the project, the project itself left out.
const localSource = `(?m)^\s*source = \{ (?:editable|directory|path) = "([^"]*)"`

// keyOf names the environment of a project by everything it follows from.
// Content stands for all of the project's files.
func keyOf(dir, content string, uv schema.UV) (string, error) {
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

func argsOf(uv schema.UV) []string {
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

// run runs uv in the task's environment, which may hold what an index asks
// for. It shares the lock with uv, so that the lock is held until uv is gone
// even if this agent dies before.
func (b Builder) run(ctx context.Context, argv []string, venv string, lock *os.File) error {
	env, err := b.Env()
	if err != nil {
		return err
	}
	build := hostdir.BuildRecord{Nonce: b.Nonce}
	if err := errors.Join(b.Dir.MarkDirty(), record.WriteJSON(b.Dir.File(hostdir.BuildFile), build)); err != nil {
		return fmt.Errorf("prepare uv environment: %w", err)
	}
	// A child with a death signal follows the thread that made it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = b.Project
	cmd.Env = append(env, "UV_PROJECT_ENVIRONMENT="+venv, "VIRTUAL_ENV="+venv, "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.DieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return process.Signal(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if endErr := EndBuild(b.Dir, build); endErr != nil {
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
	return &outcome.Early{
		State:  state,
		Reason: fmt.Sprintf("uv sync: %v: %s", err, strings.Join(command.LastLines(text, 3), "; ")),
		Output: text,
	}
}

// EndBuild ends what is left of the preparation of a task.
func EndBuild(dir *hostdir.Dir, build hostdir.BuildRecord) error {
	if err := process.Sweep(process.Traces{Nonce: build.Nonce}); err != nil {
		return err
	}
	if err := os.Remove(dir.File(hostdir.BuildFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
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
