package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/stack"
)

// amendCommon is what both sides of the proof declare: the shape of their jobs.
const amendCommon = `
locals {
  run = "echo $0 >> %[1]s; exec sleep 1000"
}
`

// amendSides are two configurations that declare the same jobs under other
// addresses. Going there moves them, and lets go of one; going back moves them
// back, and takes that one up again. Nothing that runs is ever to notice.
func amendSides() [2]string {
	return [2]string{amendCommon + `
job "one" {
  command = ["sh", "-c", local.run, "one"]
}
job "many" {
  count   = 2
  command = ["sh", "-c", local.run, "many"]
}
job "gone" {
  command = ["sh", "-c", local.run, "gone"]
}
moved {
  from = module.m.job.one
  to   = job.one
}
moved {
  from = job.many["x"]
  to   = job.many[0]
}
moved {
  from = job.many["y"]
  to   = job.many[1]
}
import {
  to = job.gone
  id = "%[2]s"
}
`, amendCommon + `
module "m" {
  source = "./m"
}
job "many" {
  for_each = toset(["x", "y"])
  command  = ["sh", "-c", local.run, "many"]
}
moved {
  from = job.one
  to   = module.m.job.one
}
moved {
  from = job.many[0]
  to   = job.many["x"]
}
moved {
  from = job.many[1]
  to   = job.many["y"]
}
removed {
  from = job.gone
  lifecycle {
    destroy = false
  }
}
`}
}

// amendStack is a stack that is crashed while its files move what it has.
type amendStack struct {
	*proofStack
	gone string // the slice that is released and imported again
}

func newAmendStack(t *testing.T, bucket *emulator) *amendStack {
	t.Helper()
	s := &amendStack{proofStack: newProofStack(t, bucket)}
	s.program = withCrashPoints(t)
	module := fmt.Sprintf(amendCommon, filepath.Join(s.dir, "starts"))
	module += "job \"one\" {\n  command = [\"sh\", \"-c\", local.run, \"one\"]\n}\n"
	if err := os.Mkdir(filepath.Join(s.dir, "m"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "m", "main.hcl"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(amendSides()[0], "moved {")
	s.write(t, fmt.Sprintf(first, filepath.Join(s.dir, "starts")))
	s.must(t, "apply", "--auto-approve", crashPatience)
	st, err := s.store(t)
	if err != nil {
		t.Fatal(err)
	}
	doc, _, err := apply.LoadState(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	for name := range doc.Slices {
		if strings.HasPrefix(name, "gone-") {
			s.gone = name
		}
	}
	return s
}

func (s *amendStack) turn(t *testing.T, to side) {
	t.Helper()
	text := amendSides()[to]
	if to == 0 {
		text = fmt.Sprintf(text, filepath.Join(s.dir, "starts"), s.gone)
	} else {
		text = fmt.Sprintf(text, filepath.Join(s.dir, "starts"))
	}
	s.write(t, text)
}

// check compares the stack with a side: its addresses, what is unmanaged, and
// that nothing was started but once.
func (s *amendStack) check(t *testing.T, to side) error {
	st, err := s.store(t)
	if err != nil {
		return err
	}
	doc, _, err := apply.LoadState(t.Context(), st)
	if err != nil {
		return err
	}
	want := [2][]string{
		{"job.gone", "job.many[0]", "job.many[1]", "job.one"},
		{`job.many["x"]`, `job.many["y"]`, "module.m.job.one"},
	}[to]
	var got []string
	for _, addr := range stack.SortedJobs(doc) {
		got = append(got, addr.String())
		if j := doc.Jobs[addr]; !j.Ready || j.Attempt != 1 {
			err = errors.Join(err, fmt.Errorf("%s: %s, attempt %d, ready %t, want attempt 1 ready", addr, j.Status, j.Attempt, j.Ready))
		}
	}
	if !slices.Equal(got, want) {
		err = errors.Join(err, fmt.Errorf("jobs: got %q, want %q", got, want))
	}
	unmanaged := slices.Collect(maps.Keys(doc.Unmanaged))
	if letGo := to == 1; len(unmanaged) != int(to) || letGo && unmanaged[0] != s.gone {
		err = errors.Join(err, fmt.Errorf("unmanaged: got %q, want %q only on side 1", unmanaged, s.gone))
	}
	started, readErr := s.lines("starts")
	if slices.Sort(started); !slices.Equal(started, []string{"gone", "many", "many", "one"}) {
		err = errors.Join(err, fmt.Errorf("started: got %q, want each task once", started))
	}
	return errors.Join(err, readErr)
}

// amendments counts what is planned of moves, imports and removals.
func (s *amendStack) amendments(t *testing.T) (int, error) {
	got, err := s.run(t, nil, "plan", "--json")
	if err != nil || got.code != 0 {
		return 0, fmt.Errorf("plan: %v %w", got, err)
	}
	n := 0
	for _, v := range plan.AmendVerbs() {
		n += strings.Count(got.stdout, fmt.Sprintf(`{"action":%q,`, v))
	}
	return n, nil
}

// TestCrashAmend kills an apply of moved, removed and import blocks at each of
// its calls. What is there then is all of it or nothing, the next apply does
// the rest, and no task ever starts again. In the bucket only if FRAY_TEST_SOAK
// is set.
func TestCrashAmend(t *testing.T) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) { proveAmendCrashes(t, nil) })
	if allPoints() {
		t.Run("bucket", func(t *testing.T) { proveAmendCrashes(t, emulatorWith(t, false)) })
	}
}

func proveAmendCrashes(t *testing.T, bucket *emulator) {
	s := newAmendStack(t, bucket)
	killed, survived := 0, 0
	done := [2]bool{}
	for point := 1; !done[0] || !done[1]; point++ {
		for _, to := range []side{1, 0} {
			s.turn(t, to)
			env := []string{fmt.Sprintf("FRAY_TEST_CRASH_AT=%d", point), "FRAY_TEST_LEASE_TTL=" + crashTTL.String()}
			got, err := s.run(t, env, "apply", "--auto-approve", crashPatience)
			lost := got.code == 1 && strings.Contains(got.stderr, "lease lost") // as good as killed
			if err != nil || got.code > 0 && !lost {
				t.Fatalf("to side %d, point %d: ended neither well nor by SIGKILL: %v %v", to, point, got, err)
			}
			if got.code == 0 {
				survived, done[to] = survived+1, true
			} else {
				killed++
			}
			n, err := s.amendments(t)
			if err != nil || n != 0 && n != 4 || got.code == 0 && n != 0 {
				t.Errorf("to side %d, point %d: %d amendments are left (%v), want all 4 or none", to, point, n, err)
			}
			if err := s.goesOn(t); err != nil {
				t.Fatalf("to side %d, point %d: %v", to, point, err)
			}
			if err := within(proofPatience, func() error { return s.check(t, to) }); err != nil {
				t.Fatalf("to side %d, point %d: %v", to, point, err)
			}
			if after, err := s.run(t, nil, "plan", "--detailed-exitcode"); err != nil || after.code != 0 {
				t.Errorf("to side %d, point %d: the plan after it is not empty: %v %v", to, point, after, err)
			}
		}
	}
	t.Logf("%d applies were killed, %d had fewer calls than that", killed, survived)
	if killed < 6 {
		t.Errorf("only %d applies were killed", killed)
	}
}
