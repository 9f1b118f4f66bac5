package profiler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fray-ml/fray/agent/command"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/tree"
	"github.com/fray-ml/fray/agent/uv"
	"github.com/fray-ml/fray/profile"
)

// pySpy is the version that is installed where there is none.
const pySpy = "py-spy==0.4.3"

// recordPython samples a Python process, and those that it started unless it was chosen by its id.
func (m *measurement) recordPython(ctx context.Context, c candidate) error {
	program, err := m.findPySpy(ctx, c)
	if err != nil {
		return err
	}
	if err := mayTrace(c.PID); err != nil {
		return err
	}
	// It has no name, so that nothing of it is left whatever ends this process.
	file, err := os.CreateTemp("", "fray-profile-")
	if err != nil {
		return fmt.Errorf("write the profile on the host: %w", err)
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("write the profile on the host: %w", err)
	}
	args := []string{
		"record", "--pid", strconv.Itoa(c.PID), "--format", "speedscope", "--output", "/dev/fd/3",
		"--duration", strconv.Itoa(max(1, int(m.Duration.Round(time.Second).Seconds()))), "--rate", strconv.Itoa(m.Rate),
	}
	if m.PID == 0 {
		args = append(args, "--subprocesses")
	}
	m.note("measuring process %d (%s) for %s with %s", c.PID, c.program, m.Duration, program)
	if _, err := m.runPySpy(ctx, program, file, args...); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("py-spy recorded nothing of process %d: it ended too early", c.PID)
	}
	if data, err = withoutCommandLines(data); err != nil {
		return err
	}
	return m.send(profile.Header{Kind: m.Kind, Format: profile.Speedscope, Tool: "py-spy", PID: c.PID, Program: c.program}, data)
}

// send sends the profile.
func (m *measurement) send(h profile.Header, data []byte) error {
	if err := h.Write(m.out); err != nil {
		return err
	}
	_, err := m.out.Write(data)
	return err
}

// runPySpy runs py-spy to its end and returns what it printed. It has file as its third one.
// An interrupt of the user reaches it as well, and it then writes what it has.
func (m *measurement) runPySpy(ctx context.Context, program string, file *os.File, args ...string) (string, error) {
	runtime.LockOSThread() // it dies with the thread that starts it
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(command.WithoutFray(os.Environ()), process.NonceEnv+"="+os.Getenv(process.NonceEnv))
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	var output, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &failure
	if file != nil { // it states when it begins to sample
		cmd.Stdout = io.MultiWriter(&output, m.notes)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	process.DieWithParent(cmd.SysProcAttr)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("py-spy could not measure it: %s", reasonOf(failure.String(), err))
	}
	return output.String(), nil
}

// reasonOf is what py-spy printed first about an error, or else how it ended.
func reasonOf(printed string, err error) string {
	const most = 3 // a trace of its own calls follows
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(printed, "�")) {
		if line = strings.TrimSpace(line); line != "" && len(lines) < most {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return err.Error()
	}
	return strings.Join(lines, "; ")
}

// findPySpy finds py-spy beside the task's Python, on the task's and on the agent's path and in the
// agent's cache, where it is installed otherwise.
func (m *measurement) findPySpy(ctx context.Context, c candidate) (string, error) {
	var places []string
	if exe, err := os.Readlink(procFile(c.PID, "exe")); err == nil && m.Container == 0 {
		places = append(places, filepath.Dir(exe))
	}
	places = append(append(places, filepath.SplitList(m.Path)...), filepath.SplitList(os.Getenv("PATH"))...)
	for _, dir := range places {
		if program := filepath.Join(dir, "py-spy"); filepath.IsAbs(dir) && command.Executable(program) == nil {
			return program, nil
		}
	}
	dir := filepath.Join(m.CacheDir, "py-spy")
	program := filepath.Join(dir, "bin", "py-spy")
	if err := os.MkdirAll(m.CacheDir, 0o700); err != nil {
		return "", err
	}
	lock, err := hostdir.WaitLock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if command.Executable(program) == nil && tree.Intact(dir) {
		return program, nil
	}
	if err := m.installPySpy(ctx, dir); err != nil {
		return "", fmt.Errorf("py-spy, which measures Python, is not on the host, and cannot be installed there: %w; "+
			"add py-spy to the job's environment (uv add py-spy, or to its image) or to the boot image", err)
	}
	return program, nil
}

// installPatience bounds the installation of py-spy, which is a file of some megabytes.
const installPatience = 2 * time.Minute

func (m *measurement) installPySpy(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installPatience, errors.New("it takes too long"))
	defer cancel()
	temp := dir + ".new"
	argv := []string{"python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", temp, pySpy}
	if program, err := uv.Program(m.CacheDir); err == nil {
		argv = []string{program, "pip", "install", "--quiet", "--no-python-downloads", "--target", temp, pySpy}
	}
	m.note("installing %s on the host", pySpy)
	if err := errors.Join(os.RemoveAll(temp), os.RemoveAll(dir)); err != nil {
		return err
	}
	env := append(command.WithoutFray(os.Environ()), process.NonceEnv+"="+os.Getenv(process.NonceEnv))
	output, err := command.Run(ctx, argv, env)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("pip install: %s", command.LastLine(output, err))
	}
	return tree.Place(temp, dir)
}
