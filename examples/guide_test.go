package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guideBlock returns a block of commands of a guide, the first is 0.
func guideBlock(t *testing.T, guide string, block int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "docs", "guides", guide))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```[^\n]*\n.*?^```$|(?:^    [^\n]*\n)+").FindAllString(string(data), -1)
	blocks = slices.DeleteFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "```") })
	if block >= len(blocks) {
		t.Fatalf("%s has %d blocks of commands", guide, len(blocks))
	}
	return regexp.MustCompile(`(?m)^    `).ReplaceAllString(blocks[block], "")
}

// shell is a command that runs a script as one types it beside the directory of the examples.
func (s *stack) shell(script string) *exec.Cmd {
	cmd := s.command(s.t.Context(), "")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "set -eu\n" + script}
	cmd.Dir = filepath.Dir(s.dir)
	search := os.Getenv("PATH")
	for _, variable := range s.env {
		if own, ok := strings.CutPrefix(variable, "PATH="); ok {
			search = own
		}
	}
	cmd.Env = append(cmd.Env, "NO_COLOR=1", "PATH="+filepath.Dir(fray)+string(filepath.ListSeparator)+search)
	return cmd
}

// follow runs a block of commands of a guide as it is written, approves what it asks, and
// returns what it has shown. Pairs of texts replace what a reader has to fill in.
func (s *stack) follow(guide string, block int, filled ...string) string {
	s.t.Helper()
	script := guideBlock(s.t, guide, block)
	s.gone = false
	shown, err := atTerminal(s.t, s.shell(strings.NewReplacer(filled...).Replace(script)))
	if err != nil {
		s.t.Fatalf("%s: %v\n%s\nit showed\n%s", guide, err, script, shown)
	}
	return shown
}

// following runs a block of commands of a guide until the returned function is called.
func (s *stack) following(guide string, block int) (stop func()) {
	s.t.Helper()
	var output lockedBuffer
	cmd := s.shell("exec " + guideBlock(s.t, guide, block))
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%s: %v\n%s", guide, err, &output)
		}
	}
}
