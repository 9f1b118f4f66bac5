package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
)

// readGuide returns the text of a guide below a heading, "" for all of it, up to the
// next heading of the kind.
func readGuide(t *testing.T, name, heading string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if heading == "" {
		return text
	}
	_, text, found := strings.Cut(text, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// commandsOf returns the lines of the indented blocks of a text, as a script.
func commandsOf(t *testing.T, text string) string {
	t.Helper()
	script := ""
	for _, line := range regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(text, -1) {
		script += line[1] + "\n"
	}
	if script == "" {
		t.Fatal("there are no commands")
	}
	return script
}

// guideShell returns a shell for a script in a directory, with fray on its PATH.
func guideShell(t *testing.T, dir, script string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(fray)+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "NO_COLOR=1")
	return cmd
}

// runGuide runs a script of a guide, which must succeed, and returns what it printed.
func runGuide(t *testing.T, dir, script string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a file: a pipe would wait for agents
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := guideShell(t, dir, script)
	cmd.Stdout, cmd.Stderr = out, out
	runErr := cmd.Run()
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if runErr != nil {
		t.Fatalf("%v\nthe script:\n%s\nit printed:\n%s", runErr, script, printed)
	}
	return string(printed)
}

// TestRehearsalGuide: the command of the guide's first block prints a report as shown.
func TestRehearsalGuide(t *testing.T) {
	t.Parallel()
	needsFray(t)
	dir := t.TempDir()
	writeConfig(t, dir, snippets(t, "gcp.md", 2)[0])
	block := regexp.MustCompile("(?ms)^```console\n\\$ (.*?)\n(.*?)^```$").FindStringSubmatch(readGuide(t, "rehearsal.md", ""))
	if block == nil {
		t.Fatal("the guide has no command")
	}
	printed := runGuide(t, dir, block[1])
	header := strings.Split(block[2], "\n")[2]
	for _, want := range []string{"Rehearsed 168 h of scenario stormy (seed 1) in ", strings.Join(strings.Fields(header), " ")} {
		if !strings.Contains(strings.Join(strings.Fields(printed), " "), want) {
			t.Errorf("it did not print %q:\n%s", want, printed)
		}
	}
}

// TestClusterGuide: fray accepts the guide's configuration, and its program runs as the
// guide starts it.
func TestClusterGuide(t *testing.T) {
	needsFray(t)
	for _, snippet := range snippets(t, "cluster.md", 1) {
		dir := t.TempDir()
		writeConfig(t, dir, snippet)
		src, diags := lang.Parse([]string{dir})
		if !diags.HasErrors() {
			_, diags = src.Evaluate(eval.Options{})
		}
		if diags.HasErrors() {
			t.Errorf("%v in\n%s", diags, snippet)
		}
	}
	guide := readGuide(t, "cluster.md", "Launch from a program")
	program := regexp.MustCompile("(?ms)^```python\n(.*?)^```$").FindStringSubmatch(guide)
	run := regexp.MustCompile(`(?m)^    (fray run .*)$`).FindStringSubmatch(guide)
	if program == nil || run == nil {
		t.Fatal("the guide has no program, or does not run it")
	}
	venv, err := filepath.Abs(filepath.Join("..", "..", "python", ".venv", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, dir, "")
	if err := os.WriteFile(filepath.Join(dir, "hello.py"), []byte(program[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := runGuide(t, dir, "export PATH="+venv+":$PATH\nfray watch >watch.log 2>&1 &\nwatch=$!\n"+
		"trap 'kill $watch' EXIT\nuntil grep -q http:// watch.log; do sleep 0.1; done\n"+run[1]+"\n")
	if !strings.Contains(printed, "succeeded") {
		t.Errorf("the program printed no status:\n%s", printed)
	}
}

// TestFailuresGuide breaks the README's trainer with the guide's commands, and sees the
// attempts that the guide's table promises.
func TestFailuresGuide(t *testing.T) {
	t.Parallel()
	needsFray(t)
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```$").FindStringSubmatch(string(readme))
	retries := regexp.MustCompile("(?ms)^```hcl fragment\n(.*?)^```$").FindStringSubmatch(readGuide(t, "failures.md", ""))
	old := "  retries {\n    preemption = 100\n  }\n"
	if config == nil || retries == nil || !strings.Contains(config[1], old) {
		t.Fatal("the README has no such trainer, or the guide no retries")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, dir, strings.Replace(strings.Replace(config[1], old, retries[1], 1), "600", "100000", 1))
	runGuide(t, dir, "fray apply --auto-approve")
	watch := guideShell(t, dir, "exec fray watch >watch.log 2>&1")
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watch.Process.Kill(); _ = watch.Wait() })
	for i, step := range []struct{ heading, outcome string }{
		{"A task", "failed"}, {"A whole host", "exit_unknown"}, {"A preemption", "preempted"},
	} {
		runGuide(t, dir, commandsOf(t, readGuide(t, "failures.md", step.heading)))
		trainerTriedAgain(t, dir, i+1, step.outcome)
	}
	runGuide(t, dir, commandsOf(t, readGuide(t, "failures.md", "An agent")))
	trainerTriedAgain(t, dir, 3, "preempted") // the same attempt goes on
	runGuide(t, dir, "fray destroy --auto-approve\n"+commandsOf(t, readGuide(t, "failures.md", "What remains afterwards")))
}

// trainerTriedAgain waits until the trainer runs again after an attempt ended so.
func trainerTriedAgain(t *testing.T, dir string, ended int, outcome string) {
	t.Helper()
	type job struct {
		Status   string
		Ready    bool
		Attempts []struct {
			Number  int
			Outcome string
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		stdout, stderr, code := frayIn(t, dir, "status", "--json", "job.trainer")
		var status struct{ Jobs []job }
		if code == 0 && json.Unmarshal([]byte(stdout), &status) == nil && len(status.Jobs) == 1 {
			j := status.Jobs[0]
			if n := len(j.Attempts); n == ended+1 && j.Ready && j.Attempts[ended-1].Outcome == outcome {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("after attempt %d: want the outcome %s, and the next one running; got exit code %d\n%s%s", ended, outcome, code, stdout, stderr)
		}
	}
}

// TestStateGuide runs the guide's commands: those of a rollback in a directory whose state has
// the serial that they name, and the others against a bucket, which is made as the guide does
// at an emulator that runs already.
func TestStateGuide(t *testing.T) {
	needsFray(t)
	guide := readGuide(t, "state.md", "")
	intro, _, _ := strings.Cut(regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(guide, ""), "\n## ")
	bucket := commandsOf(t, readGuide(t, "state.md", "Trying it without a bucket"))
	server, bucket, found := strings.Cut(bucket, "\n")
	if !found || !strings.HasPrefix(server, "go run github.com/fsouza/fake-gcs-server@") {
		t.Fatalf("the guide starts no emulator: %s", server)
	}
	bucket = strings.ReplaceAll(bucket, "localhost:4443", strings.TrimPrefix(newEmulator(t).URL, "http://"))

	dir := t.TempDir()
	t.Cleanup(func() { endProcesses(dir) })
	writeConfig(t, dir, "job \"a\" {\n  command = [\"sleep\", \"1000\"]\n}\n")
	printed := runGuide(t, dir, bucket+`fray apply --auto-approve
fray state pull >state.json
sed -i.old 's/^\( *"serial": *\)[0-9]*/\140/' state.json
fray state push state.json
fray pause
fray resume
`+commandsOf(t, readGuide(t, "state.md", "Rollback")))
	if want := "serial 41"; !strings.Contains(printed, want) {
		t.Errorf("the commands of a rollback did not print %q:\n%s", want, printed)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.hcl"), []byte(snippets(t, "state.md", 1)[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(bucket, "\n") // of the bucket, which is there now
	printed = runGuide(t, dir, address+commandsOf(t, intro)+commandsOf(t, readGuide(t, "state.md", "One at a time"))+
		"fray status\nfray destroy --auto-approve\n")
	for _, want := range []string{"Moved the state", "Lease    free", "job.a    running", "Destroy complete: 1 destroyed"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the commands with a bucket did not print %q:\n%s", want, printed)
		}
	}
}
