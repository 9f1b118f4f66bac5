package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// crashConfig is a stack that goes from one side to the other and back. Each
// way creates, replaces and destroys jobs, restarts one and a gang in place,
// runs one again that had ended, resizes a pool, and leaves three jobs alone.
// Every task that starts adds a line to starts, so that one started twice, or
// for nothing, shows.
const crashConfig = `
namespace "n" {}

reservation "pool" {
  min {
    cpu    = 1
    slices = %[2]d
  }
}

locals {
  run = "echo $0-$FRAY_TASK_INDEX >> %[1]s; exec sleep 1000"
}

job "kept" {
  command = ["sh", "-c", local.run, "kept"]
}

job "done" {
  command = ["sh", "-c", "echo $0-$FRAY_TASK_INDEX >> %[1]s", "done"]
}

job "brief" {
  command = ["sh", "-c", "echo $0-$FRAY_TASK_INDEX >> %[1]s", "brief"]
  environment {
    env = { SIDE = "%[3]s" }
  }
}

job "%[3]s" {
  namespace  = namespace.n
  command    = ["sh", "-c", local.run, "%[3]s"]
  depends_on = [job.done, job.brief]
}

job "changed" {
  command = ["sh", "-c", local.run, "changed"]
  environment {
    env = { SIDE = "%[3]s" }
  }
}

job "moved" {
  command = ["sh", "-c", local.run, "moved"]
  resources {
    tpu = "%[4]s"
  }
}

job "gang" {
  command = ["sh", "-c", local.run, "gang"]
  resources {
    reservation = reservation.pool
    slices      = 2
  }
  environment {
    env = { SIDE = "%[3]s" }
  }
}

job_group "g" {
  job "left" {
    command = ["sh", "-c", local.run, "left"]
  }
  job "right" {
    command = ["sh", "-c", local.run, "right"]
    resources {
      tpu = "%[5]s"
    }
  }
}
`

// side is one of the two configurations of the crash proof.
type side int

func (s side) other() side { return 1 - s }

func (s side) config(starts string) string {
	if s == 0 {
		return fmt.Sprintf(crashConfig, starts, 2, "old", "v5litepod-4", "v5litepod-8")
	}
	return fmt.Sprintf(crashConfig, starts, 3, "new", "v5litepod-8", "v5litepod-4")
}

// starts are the tasks that going to this side starts, each once.
func (s side) starts() []string {
	fresh := []string{"old-0", "new-0"}[s]
	return slices.Sorted(slices.Values([]string{fresh, "brief-0", "changed-0", "gang-0", "gang-1", "moved-0", "right-0"}))
}

// crashStack is a stack that is crashed on its way between the sides.
type crashStack struct{ *proofStack }

func newCrashStack(t *testing.T, bucket *emulator) *crashStack {
	s := &crashStack{newProofStack(t, bucket)}
	s.program = withCrashPoints(t)
	if bucket != nil {
		// Who is not killed keeps its lease, however slow the machine.
		s.env = append(s.env, "FRAY_TEST_LEASE_TTL=2m")
	}
	return s
}

// turn declares a side and forgets what was started until now.
func (s *crashStack) turn(t *testing.T, to side) {
	t.Helper()
	starts := filepath.Join(s.dir, "starts")
	s.write(t, to.config(starts))
	if err := os.WriteFile(starts, nil, 0o644); err != nil {
		t.Error(err)
	}
}

// uninterrupted applies a side and returns the points that this passed.
func (s *crashStack) uninterrupted(t *testing.T, to side) ([]string, error) {
	s.turn(t, to)
	log := filepath.Join(s.dir, "points.log")
	if err := os.RemoveAll(log); err != nil {
		return nil, err
	}
	got, err := s.run(t, []string{"FRAY_TEST_CRASH_LOG=" + log}, "apply", "--auto-approve", crashPatience)
	if err == nil && got.code != 0 {
		err = fmt.Errorf("apply of side %d: %v", to, got)
	}
	if err == nil {
		err = within(proofPatience, s.begun)
	}
	if err != nil {
		return nil, err
	}
	return s.lines("points.log")
}

// begun is an error while a task runs that may not have added its line yet: that
// would be one of the next side's. From then on it is another program.
func (s *crashStack) begun() error {
	for _, p := range processes(s.dir) {
		if program, _, _ := strings.Cut(p.cmdline, " "); path.Base(program) == "sh" {
			return fmt.Errorf("pid %d has not begun: %s", p.pid, p.cmdline)
		}
	}
	return nil
}

// crashPatience ends an apply that does not come to an end by itself.
const crashPatience = "--timeout=5m"

// crashTTL is how long those that come after a killed apply wait for its lease
// in a bucket, where nothing proves that it is dead.
const crashTTL = 4 * time.Second

// crash applies what is declared and reports whether that was killed. Calls run
// beside each other, so that a run may have fewer of them than another.
func (s *crashStack) crash(t *testing.T, point int) (killed bool, err error) {
	got, err := s.run(t, []string{fmt.Sprintf("FRAY_TEST_CRASH_AT=%d", point), "FRAY_TEST_LEASE_TTL=" + crashTTL.String()},
		"apply", "--auto-approve", crashPatience)
	if got.code == 1 && strings.Contains(got.stderr, "lease lost") {
		return true, err // on a machine so slow that its short lease lapsed: as good as killed
	}
	if err == nil && got.code > 0 {
		err = fmt.Errorf("apply ended neither well nor by SIGKILL: %v", got)
	}
	return got.code < 0, err
}

// goesOn applies what is declared after an apply was killed. On a machine so
// slow that it loses its lease, another one follows: as its message says.
func (s *proofStack) goesOn(t *testing.T) error {
	for range 3 {
		got, err := s.run(t, nil, "apply", "--auto-approve", "--lease-timeout=5m", crashPatience)
		switch {
		case err == nil && got.code == 1 && strings.Contains(got.stderr, "lease lost"):
			continue
		case err != nil || got.code != 0:
			return fmt.Errorf("the next apply failed: %v %w", got, err)
		}
		return nil
	}
	return errors.New("three applies in a row lost their lease")
}

// picture is the world as far as it must be the same after every crash: job
// statuses, pool, how many slices, processes and objects, and what was started
// on the way to a side. What contradicts itself is an error.
func (s *crashStack) picture(t *testing.T, to side) (string, error) {
	st, err := s.store(t)
	if err != nil {
		return "", err
	}
	doc, _, err := apply.LoadState(t.Context(), st)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, addr := range stack.SortedJobs(doc) {
		fmt.Fprintln(&b, addr, doc.Jobs[addr].Status, goodTasks(doc.Jobs[addr]))
	}
	for _, addr := range slices.SortedFunc(maps.Keys(doc.Resources), schema.Address.Compare) {
		fmt.Fprintln(&b, addr)
	}
	made, err := filepath.Glob(filepath.Join(s.dir, ".fray", "local", "slices", "*"))
	if err != nil {
		return "", err
	}
	for i := range made {
		made[i] = filepath.Base(made[i])
	}
	recorded := slices.Sorted(maps.Keys(doc.Slices))
	fmt.Fprintln(&b, len(recorded), "slices,", s.processes())
	assigned, reporting, err := mailbox(t, st)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(&b, len(assigned), "assignments")
	started, err := s.lines("starts")
	if err != nil {
		return "", err
	}
	slices.Sort(started)
	for _, each := range []struct {
		what      string
		got, want []string
	}{
		{"slices on this machine", made, recorded},
		{"slices whose hosts report", reporting, recorded},
		{"slices with an assignment that are there", slices.DeleteFunc(slices.Clone(assigned), func(name string) bool { return doc.Slices[name] == nil }), assigned},
		{"started tasks", started, to.starts()},
	} {
		if !slices.Equal(each.got, each.want) {
			err = errors.Join(err, fmt.Errorf("%s: got %q, want %q", each.what, each.got, each.want))
		}
	}
	return b.String(), err
}

// processes counts what runs of the stack.
func (s *crashStack) processes() string {
	count := map[string]int{}
	for _, p := range processes(s.dir) {
		words := strings.Fields(p.cmdline)
		kind := words[0]
		if len(words) > 1 && kind == fray {
			kind = words[1]
		}
		count[kind]++
	}
	return fmt.Sprint(count)
}

// mailbox are the slices that the mailbox has assignments for and reports of.
func mailbox(t *testing.T, st store.Store) (assigned, reporting []string, err error) {
	listed, err := st.List(t.Context(), store.AssignPrefix, store.HostsPrefix)
	if err != nil {
		return nil, nil, err
	}
	for _, each := range listed {
		if name, ok := strings.CutPrefix(each.Key, store.AssignPrefix); ok {
			assigned = append(assigned, strings.TrimSuffix(name, ".json"))
		} else {
			reporting = append(reporting, path.Dir(strings.TrimPrefix(each.Key, store.HostsPrefix)))
		}
	}
	return assigned, slices.Compact(reporting), nil
}

// goodTasks are how many tasks of a job's last attempt run or have succeeded.
func goodTasks(j *state.Job) string {
	last := j.Last()
	if last == nil {
		return "-"
	}
	good := 0
	for i := range last.Tasks {
		if s := last.Tasks[i].State; s == schema.TaskRunning && last.Outcome == "" || s == schema.TaskSucceeded {
			good++
		}
	}
	return fmt.Sprintf("%d/%d", good, len(last.Tasks))
}
