package rollout

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/stack"
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
	shown, listener := servePage(s)
	if listener != nil {
		cmd.Args, cmd.ExtraFiles = append(cmd.Args, "--page"), []*os.File{listener}
		defer func() { _ = listener.Close() }()
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	fmt.Fprintf(a.Stderr, "\nA controller (pid %d) keeps it true from here on; it logs to %s.\n%s\n", cmd.Process.Pid, logPath, shown)
	return cmd.Process.Release()
}

// servePage listens for the page of a controller, on this machine only, and records its address with a token. It returns what
// is reported of it, and the listener, nil if there is no page.
func servePage(s *stack.Stack) (string, *os.File) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "It serves no page: " + err.Error(), nil
	}
	defer func() { _ = listener.Close() }() // the file is another descriptor of it
	page := stack.Page{Address: "http://" + listener.Addr().String() + "/", Token: rand.Text()}
	err = s.WritePage(page)
	tcp, ok := listener.(*net.TCPListener)
	if err != nil || !ok {
		return fmt.Sprintf("It serves no page: %v", err), nil
	}
	file, err := tcp.File()
	if err != nil {
		return "It serves no page: " + err.Error(), nil
	}
	return "Its page, for this user: " + page.URL(), file
}
