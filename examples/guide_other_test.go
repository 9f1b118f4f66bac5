//go:build !linux

package examples

import (
	"os/exec"
	"strings"
	"testing"
)

// atTerminal runs a command that asks nothing, where there is no terminal to ask at.
func atTerminal(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	script := &cmd.Args[len(cmd.Args)-1]
	for _, verb := range []string{"fray apply ", "fray destroy "} {
		*script = strings.ReplaceAll(*script, verb, verb+"--auto-approve ")
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
