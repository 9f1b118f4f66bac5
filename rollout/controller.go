package rollout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/terminal"
)

// startController starts a detached `fray watch` unless one leads already. Its
// output goes to watch.log in the stack's directory.
func startController(a *terminal.Terminal, l *configuration.Loaded) error {
	s := l.Stack
	if _, ok := s.WatchLease(context.Background()); ok {
		return nil
	}
	logPath := filepath.Join(s.Root, "watch.log")
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	defer func() { _ = out.Close() }()
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	args := []string{"watch", "--detached", "--workspace=" + s.Workspace}
	if l.Options.Local {
		args = append(args, "--local")
	}
	for _, path := range l.Paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("start controller: %w", err)
		}
		args = append(args, abs)
	}
	cmd := exec.Command(executable, args...)
	cmd.Dir = s.Dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	fmt.Fprintf(a.Stderr, "\nA controller (pid %d) keeps it true from here on; it logs to %s.\n", cmd.Process.Pid, logPath)
	return cmd.Process.Release()
}
