package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/schema"
)

// Reveal returns a command's arguments in clear.
func Reveal(args []schema.Text, sealer schema.Sealer) ([]string, error) {
	argv := make([]string, 0, len(args))
	for i, arg := range args {
		value, err := arg.Reveal(sealer)
		if err != nil {
			return nil, fmt.Errorf("argument %d of the command: %w", i, err)
		}
		argv = append(argv, value)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("the command is empty")
	}
	return argv, nil
}

// Find returns the file to execute for a command's first argument: one with
// a slash is looked up from the working directory, any other on the task's PATH.
func Find(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, name)
		}
		switch err := Executable(file); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("command %q not found in %s", name, dir)
		case err != nil:
			return "", fmt.Errorf("command %q in %s cannot be run: %w", name, dir, err)
		}
		return file, nil
	}
	for _, place := range filepath.SplitList(path) {
		if !filepath.IsAbs(place) {
			place = filepath.Join(dir, place)
		}
		if file := filepath.Join(place, name); Executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("command %q not found on PATH (%s)", name, path)
}

// Executable returns why a file cannot be executed, nil if it can.
func Executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable (chmod +x helps)")
	}
	return nil
}

// Run runs a program that may take its time, and returns what it wrote. It
// ends with ctx, and with the agent.
func Run(ctx context.Context, argv, env []string) (string, error) {
	// A child with a death signal follows the thread that made it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", env
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.DieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return process.Signal(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return output.String(), err
}

// WithoutFray is an environment without the variables of fray.
func WithoutFray(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "FRAY_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// WithEntry is an environment with one variable set.
func WithEntry(env []string, name, value string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name
	})
	return append(kept, name+"="+value)
}

// Lookup returns the value of a variable in an environment.
func Lookup(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// LastLines are the last n lines of some output.
func LastLines(output string, n int) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}

// LastLine is the last line of what a program wrote, or else how it ended.
func LastLine(output string, err error) string {
	if last := LastLines(strings.ToValidUTF8(output, "�"), 1); len(last) > 0 {
		return last[0]
	}
	return err.Error()
}
