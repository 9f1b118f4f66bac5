package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An apply exits 0 only when a plan after it is empty, for all examples whose programs
// need nothing, and where something goes wrong: a job that fails, one that waits for
// others, one that cannot start in time.
func TestPlanAfterApplyIsEmpty(t *testing.T) {
	t.Parallel()
	const long, done, fails = `command = ["sleep", "1000"]`, `command = ["true"]`, `command = ["false"]`
	for _, test := range []struct {
		name   string
		config string
		flags  []string
		want   int // of the apply
	}{
		{"runs", "job \"a\" {\n" + long + "\n}\noutput \"x\" { value = job.a.address }", nil, 0},
		{"ends", "job \"a\" {\n" + done + "\n}\noutput \"x\" { value = job.a.status }", []string{"--wait=complete"}, 0},
		{"ends later", "job \"a\" {\n" + done + "\n}\noutput \"x\" { value = job.a.status }", nil, 0},
		{"waits for another", "job \"a\" {\n" + done + "\n}\njob \"b\" {\n" + long + "\ndepends_on = [job.a]\n}\noutput \"x\" { value = job.b.address }", nil, 0},
		{"group", "job_group \"g\" {\njob \"a\" {\ncount = 2\n" + long + "\n}\njob \"b\" {\n" + done + "\n}\n}", nil, 0},
		{"reservation", "reservation \"r\" {\nmin {\ncpu = 1\n}\nmax {\ncpu = 1\n}\n}\njob \"a\" {\n" + long + "\nresources {\nreservation = reservation.r\n}\n}", nil, 0},
		{"fails", "job \"a\" {\n" + fails + "\n}\noutput \"x\" { value = job.a.status }", []string{"--wait=complete"}, 1},
		{"fails and another ends", "job \"a\" {\n" + fails + "\n}\njob \"b\" {\n" + done + "\n}", []string{"--wait=complete"}, 1},
		{"blocked by a failure", "job \"a\" {\n" + fails + "\n}\njob \"b\" {\n" + long + "\ndepends_on = [job.a]\n}", nil, 1},
		{"out of time", "job \"a\" {\n" + long + "\n}\njob \"b\" {\n" + long + "\ndepends_on = [job.a]\n}", []string{"--timeout=1s"}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeConfig(t, dir, test.config)
			planIsEmptyAfterApply(t, dir, "", test.want, test.flags...)
		})
	}
	examples := t.TempDir()
	if err := os.CopyFS(examples, onlyShipped{os.DirFS("../../examples")}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"quickstart.hcl", "inference.hcl", "colocated.hcl", "rl.hcl", "training.hcl"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			planIsEmptyAfterApply(t, examples, file, 0)
		})
	}
}

// onlyShipped is a directory without what programs left in it.
type onlyShipped struct{ fs.FS }

func (o onlyShipped) Open(name string) (fs.File, error) { return o.FS.Open(name) }

func (o onlyShipped) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(o.FS, name)
	kept := all[:0]
	for _, e := range all {
		if base := e.Name(); base != ".fray" && base != "out" && base != "__pycache__" && base != ".venv" {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// planIsEmptyAfterApply applies a file, "" for the directory's, and plans it.
func planIsEmptyAfterApply(t *testing.T, dir, file string, want int, flags ...string) {
	t.Helper()
	of := func(words ...string) []string {
		if file != "" {
			words = append(words, file)
		}
		return words
	}
	defer func() {
		if stdout, stderr, code := frayIn(t, dir, of("destroy", "--auto-approve")...); code != 0 {
			t.Errorf("destroy exits %d:\n%s%s", code, stdout, stderr)
		}
	}()
	stdout, stderr, applied := frayIn(t, dir, of(append([]string{"apply", "--auto-approve"}, flags...)...)...)
	if applied != want {
		t.Fatalf("apply exits %d, want %d:\n%s%s", applied, want, stdout, stderr)
	}
	planned, problems, code := frayIn(t, dir, of("plan", "--detailed-exitcode")...)
	if applied == 0 && code == 2 && runsFewer(t, dir, file, stdout) { // a job has ended since
		stdout, stderr, applied = frayIn(t, dir, of(append([]string{"apply", "--auto-approve"}, flags...)...)...)
		if applied != 0 {
			t.Fatalf("apply exits %d after a job has ended:\n%s%s", applied, stdout, stderr)
		}
		planned, problems, code = frayIn(t, dir, of("plan", "--detailed-exitcode")...)
	}
	if applied == 0 && code != 0 {
		t.Errorf("apply exits 0, and a plan after it %d:\n%s%s\nThe apply said:\n%s%s", code, planned, problems, stdout, stderr)
	}
	if applied != 0 && (strings.TrimSpace(stderr) == "" || code == 1) {
		t.Errorf("apply exits %d and says %q; the plan after it exits %d: %s", applied, stderr, code, problems)
	}
}

// runsFewer reports whether fewer jobs of a file, "" for the directory, run now than an apply said at its end.
func runsFewer(t *testing.T, dir, file, summary string) bool {
	t.Helper()
	said := regexp.MustCompile(`Jobs: (\d+) running`).FindStringSubmatch(summary)
	if said == nil {
		return false
	}
	before, err := strconv.Atoi(said[1])
	if err != nil {
		t.Fatal(err)
	}
	status, problems, code := frayIn(t, dir, "status", "--json", "--chdir="+filepath.Join(dir, file))
	if code != 0 {
		t.Fatalf("status exits %d: %s", code, problems)
	}
	return strings.Count(status, `"status": "running"`) < before
}
