package main

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/fray-ml/fray/terminal"
)

// A process makes the command alone that its command line names. It is the one that fray has, and
// explains itself as that does.
func TestRootOfOneCommand(t *testing.T) {
	help := func(args []string, alone bool) string {
		var out bytes.Buffer
		a := terminal.New(nil, &out, &out)
		root := newRoot(a)
		if alone {
			root = rootFor(a, args)
			if n := len(root.Commands()); n > 2 { // itself and help
				t.Errorf("%v: %d commands are made", args, n)
			}
		}
		root.SetArgs(args)
		root.SetOut(&out)
		root.SetErr(&out)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return out.String()
	}
	for _, v := range allVerbs() {
		if name := v.command(terminal.New(nil, io.Discard, io.Discard)).Name(); name != v.name {
			t.Errorf("%s is called %s", name, v.name)
		}
		args := []string{v.name, "--help"}
		if slices.Contains([]string{"agent", "rl"}, v.name) {
			continue // read their flags themselves
		}
		if got, want := help(args, true), help(args, false); got != want {
			t.Errorf("fray %s --help prints\n%s\nand with all commands\n%s", v.name, got, want)
		}
	}
	for _, args := range [][]string{nil, {"--no-color", "plan"}, {"help", "plan"}, {"completion", "bash"}, {"__complete", "pl"}, {"paln"}} {
		if n := len(rootFor(terminal.New(nil, io.Discard, io.Discard), args).Commands()); n < len(allVerbs()) {
			t.Errorf("%v: only %d commands are made", args, n)
		}
	}
}
