package examples

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/terminal/terminaltest"
)

// atTerminal runs a command at a terminal, answers each question with yes, and returns what
// the terminal has shown.
func atTerminal(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	master, slave := terminaltest.Open(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	_ = slave.Close() // from now on the screen ends with the command
	const question = `Only "yes" is accepted: `
	var shown strings.Builder
	buf, answered := make([]byte, 4096), 0
	for {
		n, err := master.Read(buf)
		shown.Write(buf[:n])
		if strings.Count(shown.String(), question) > answered {
			answered++
			if _, err := master.WriteString("yes\n"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			return shown.String(), cmd.Wait()
		}
	}
}
