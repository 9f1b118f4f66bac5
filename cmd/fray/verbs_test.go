package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fray-ml/fray/terminal"
)

// verbPatience is how long a verb that waits by its nature is let run, and how
// long any other one may take.
const (
	waitingPatience = 150 * time.Millisecond
	verbPatience    = 5 * time.Minute
)

// waits are the verbs, and the flags of others, that go on until Ctrl-C.
var (
	waitingVerbs = []string{"fray watch", "fray emulate gcp", "fray agent", "fray task-shim", "fray run"}
	waitingFlags = []string{"--follow", "--watch"}
)

// outputFlags are the flags that change what a verb prints, each with a value
// where it wants one.
var outputFlags = map[string]string{
	"json": "", "markdown": "", "detailed-exitcode": "", "verbose": "", "no-color": "", "raw": "", "diff": "", "check": "",
	"no-prefix": "", "follow": "", "watch": "", "auto-approve": "", "out": "=saved.plan", "format": "=mermaid", "plan": "=one.plan", "list": "=false",
}

// verbPlaces are what the verbs are given to act on.
var verbPlaces = [][]string{
	{}, {"."}, {"fray.hcl"}, {"one.plan"}, {"other.plan"}, {"missing"}, {"job.one"}, {"job.one", "missing"}, {"n"}, {"--workspace=other"},
}

const verbsConfig = `namespace "team" {}
job "one" {
  namespace = namespace.team
  command   = ["echo", "hello"]
}
output "n" {
  value = 1 + 2
}
`

// No verb panics, whatever it is given: it ends with an exit code that is
// documented, and what it prints with --json is JSON. Flags are given all
// together, and one by one in every third place; with FRAY_TEST_SOAK, in all combinations.
func TestNoVerbPanics(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", filepath.Join(os.Getenv("HOME"), ".cache"))
	t.Setenv("NO_COLOR", "1")
	other, dir := t.TempDir(), t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, other, "output \"m\" {\n  value = 1\n}\n")
	t.Chdir(other)
	succeed(t, "plan", "--out="+filepath.Join(dir, "other.plan"))
	writeConfig(t, dir, verbsConfig)
	t.Chdir(dir)
	for _, verb := range verbs(newRoot(terminal.New(nil, io.Discard, io.Discard))) {
		path := verb.CommandPath()
		flags := outputFlagsOf(verb)
		t.Run(path, func(t *testing.T) {
			for i, place := range verbPlaces {
				freshStack(t)
				for j, chosen := range subsets(flags) {
					if alone := j > 1; alone && (i+j)%3 > 0 && !allPoints() {
						continue
					}
					if path == "fray apply" && slices.Contains(place, "one.plan") {
						freshStack(t) // a plan is applied once
					}
					tryVerb(t, slices.Concat(strings.Fields(path)[1:], place, chosen))
				}
			}
		})
	}
}

// verbs are the commands that do something, of the whole tree.
func verbs(cmd *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	if cmd.Runnable() {
		found = append(found, cmd)
	}
	for _, c := range cmd.Commands() {
		found = append(found, verbs(c)...)
	}
	return found
}

func outputFlagsOf(cmd *cobra.Command) []string {
	var flags []string
	add := func(f *pflag.Flag) {
		if value, ok := outputFlags[f.Name]; ok {
			flags = append(flags, "--"+f.Name+value)
		}
	}
	cmd.NonInheritedFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return flags
}

// subsets are choices of some flags: none, each, all of them; with FRAY_TEST_SOAK every choice.
func subsets(flags []string) [][]string {
	if n := len(flags); !allPoints() && n > 1 {
		some := [][]string{nil, flags}
		for _, f := range flags {
			some = append(some, []string{f})
		}
		return some
	}
	all := make([][]string, 0, 1<<len(flags))
	for bits := range 1 << len(flags) {
		var chosen []string
		for i, f := range flags {
			if bits&(1<<i) != 0 {
				chosen = append(chosen, f)
			}
		}
		all = append(all, chosen)
	}
	return all
}

// freshState is what freshStack left behind the last time.
var freshState string

// stackNow is all that verbs may change of the stack, as far as tests mind.
func stackNow() string {
	var all strings.Builder
	for _, file := range []string{"fray.hcl", "one.plan", filepath.Join(".fray", "state.json"), filepath.Join(".fray", "workspace")} {
		data, err := os.ReadFile(file)
		fmt.Fprintf(&all, "%s %v\n", data, err)
	}
	return all.String()
}

// freshStack makes the stack of the current directory what the files ask for,
// with a plan for it that is not stale.
func freshStack(t *testing.T) {
	t.Helper()
	if now := stackNow(); now == freshState {
		return
	}
	defer func() { freshState = stackNow() }()
	if err := os.WriteFile("fray.hcl", []byte(verbsConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	apply := []string{"apply", "--auto-approve", "--wait=complete"}
	if got := runVerb(t, verbPatience, apply); got.code != terminal.ExitOK { // a verb has paused, stopped or left it
		for _, undo := range [][]string{{"workspace", "select", "default"}, {"resume"}} {
			_ = runVerb(t, verbPatience, undo)
		}
		succeed(t, append(apply, "--replace=job.one")...)
	}
	succeed(t, "plan", "--replace=job.one", "--out=one.plan")
}

func succeed(t *testing.T, args ...string) {
	t.Helper()
	if got := runVerb(t, verbPatience, args); got.code != terminal.ExitOK {
		t.Fatalf("fray %s: %v", strings.Join(args, " "), got)
	}
}

// tryVerb runs one command line and judges how it ends.
func tryVerb(t *testing.T, args []string) {
	t.Helper()
	line := "fray " + strings.Join(args, " ")
	waits := slices.ContainsFunc(waitingVerbs, func(v string) bool { return strings.HasPrefix(line+" ", v+" ") }) ||
		slices.ContainsFunc(args, func(a string) bool { return slices.Contains(waitingFlags, a) })
	limit := verbPatience
	if waits {
		limit = waitingPatience
	}
	got := runVerb(t, limit, args)
	if !slices.Contains([]int{terminal.ExitOK, terminal.ExitError, terminal.ExitChanges, terminal.ExitPending, terminal.ExitInterrupted}, got.code) {
		t.Errorf("%s: %v\nwant an exit code of docs/commands.md", line, got)
	}
	if got.code == terminal.ExitChanges && args[0] != "fmt" && !slices.Contains(args, "--detailed-exitcode") {
		t.Errorf("%s: %v\nwant exit code 2 with --detailed-exitcode only", line, got)
	}
	if got.code == terminal.ExitError && strings.TrimSpace(got.stderr) == "" && strings.TrimSpace(got.stdout) == "" {
		t.Errorf("%s: %v\nwant a reason", line, got)
	}
	for _, trace := range []string{"goroutine ", "panic:", "runtime error", "%!"} {
		if strings.Contains(got.stdout+got.stderr, trace) {
			t.Errorf("%s: %v\nit prints %q", line, got, trace)
		}
	}
	if slices.Contains(args, "--json") && !waits {
		if n, err := documents(got.stdout); err != nil || n == 0 && got.code == terminal.ExitOK && args[0] != "events" {
			t.Errorf("%s: %v\n%d documents of JSON: %v", line, got, n, err)
		}
	}
}

// documents is how many JSON documents a text is.
func documents(text string) (n int, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var any json.RawMessage
		if err := d.Decode(&any); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

// runVerb runs a command line in this process, for a while at most. A panic fails
// the test with the command line that caused it.
func runVerb(t *testing.T, limit time.Duration, args []string) (got ending) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("fray %s: panic: %v\n%s", strings.Join(args, " "), p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("%s are over", limit))
	defer cancel()
	code := run(ctx, args, strings.NewReader(""), &stdout, &stderr)
	if ctx.Err() != nil && limit == verbPatience {
		t.Errorf("fray %s did not end within %s", strings.Join(args, " "), limit)
	}
	return ending{stdout: stdout.String(), stderr: stderr.String(), code: code}
}
