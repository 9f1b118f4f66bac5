package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Check 18: a plan that policies deny changes nothing, whichever verb carries it out, in
// whatever order its flags are, saved before or not, here or through a controller, for
// whatever reason it is denied.
func TestDeniedPlansChangeNothing(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprintf("watched %v", watched), func(t *testing.T) {
			t.Parallel()
			d := newDenied(t, watched)
			defer d.destroy(t)
			draws := rand.New(rand.NewPCG(propertytest.Seed, 1))
			for range 6 {
				d.draw(t, draws)
			}
		})
	}
}

// denied is a stack in which a job runs, before policies are declared.
type denied struct {
	dir    string
	before accepted
}

// accepted is what of a state only an accepted plan changes.
type accepted struct {
	revision  uint64
	desired   any
	attempts  map[string]int
	overrides int
}

func newDenied(t *testing.T, watched bool) *denied {
	t.Helper()
	d := &denied{dir: t.TempDir()}
	writeConfig(t, d.dir, sleeper)
	if stdout, stderr, code := frayIn(t, d.dir, "apply", "--auto-approve"); code != 0 {
		t.Fatalf("apply exits %d:\n%s%s", code, stdout, stderr)
	}
	if watched {
		d.watch(t)
	}
	d.before = d.accepted(t)
	return d
}

// destroy takes the stack down, which nothing denies by then.
func (d *denied) destroy(t *testing.T) {
	t.Helper()
	d.declare(t, "")
	if stdout, stderr, code := frayIn(t, d.dir, "destroy", "--auto-approve"); code != 0 {
		t.Errorf("destroy exits %d:\n%s%s", code, stdout, stderr)
	}
}

// watch begins a watch, and waits until it serves.
func (d *denied) watch(t *testing.T) {
	t.Helper()
	cmd := exec.Command(fray, "watch", "--http=off")
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "XDG_CACHE_HOME="+filepath.Join(d.dir, "cache"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(patience); ; sleep.For(t.Context(), 50*time.Millisecond) {
		stdout, _, _ := frayIn(t, d.dir, "status")
		if strings.Contains(stdout, "keeps it true") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no watch leads:\n%s", stdout)
		}
	}
}

func (d *denied) accepted(t *testing.T) accepted {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, ".fray", store.StateKey))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := state.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	a := accepted{revision: doc.Revision, desired: doc.Desired, attempts: map[string]int{}, overrides: len(doc.Overrides)}
	for addr, j := range doc.Jobs {
		a.attempts[addr.String()+" "+j.ID] = j.Attempt
	}
	return a
}

// declare writes the policies beside the files, "" for none.
func (d *denied) declare(t *testing.T, policies string) {
	t.Helper()
	path := filepath.Join(d.dir, "org.policy.hcl")
	if policies == "" {
		_ = os.Remove(path)
		return
	}
	if err := os.WriteFile(path, []byte(policies), 0o644); err != nil {
		t.Fatal(err)
	}
}

func rule(condition string) string {
	return "policy \"no\" {\n  rule {\n    condition     = " + condition + "\n    error_message = \"no\"\n  }\n"
}

// draw tries to carry out one plan that is denied.
func (d *denied) draw(t *testing.T, r *rand.Rand) {
	t.Helper()
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	writeConfig(t, d.dir, pick(
		sleeper,
		sleeper+"job \"two\" {\n  command = [\"sleep\", \"1000\"]\n}\n",
		strings.Replace(sleeper, "1000", "2000", 1),
		"job \"other\" {\n  command = [\"sleep\", \"1000\"]\n}\nmoved {\n  from = job.one\n  to   = job.other\n}\n",
		"provider \"local\" {}\noutput \"x\" {\n  value = 1\n}\n",
	))
	policies := pick(
		rule("false")+"}\n",
		rule("plan.revision < 0")+"  override {\n    users = [\"admin-of-another-place\"]\n  }\n}\n",
		rule("plan.no_such_part")+"}\n", // it fails
		rule("null")+"}\n",
		rule("plan.counts.no-op < 0")+"  severity = \"warn\"\n  rule {\n    condition     = plan.x\n    error_message = \"no\"\n  }\n}\n", // so does a warning
		rule("true")+"  rule {\n    for_each      = [1, 2]\n    condition     = each.value != 2\n    error_message = \"no\"\n  }\n}\n",
		"policy \"no\" {\n", // it is no policy at all
	)
	flags := []string{}
	switch pick("beside", "in a directory", "in a set") {
	case "beside":
		d.declare(t, policies)
	case "in a directory":
		d.declare(t, "")
		flags = append(flags, "--policy-dir="+d.central(t, policies))
	case "in a set":
		d.declare(t, "policy_set \"org\" {\n  source = \""+d.central(t, policies)+"\"\n}\n")
	}
	for _, flag := range []string{"--target=job.one", "--parallelism=1", "--timeout=20s", "--input=false", "--local", "--override=no=I want it", "--override=org.no=I want it"} {
		if r.IntN(4) == 0 {
			flags = append(flags, flag)
		}
	}
	verb := pick("apply", "apply", "apply --destroy", "apply --refresh-only", "destroy", "plan --out")
	if verb != "destroy" && r.IntN(3) == 0 {
		flags = append(flags, "--json")
	}
	if verb == "apply" && r.IntN(3) == 0 {
		flags = append(flags, "--replace=job.one", "--wait=complete")
	}
	args := strings.Fields(verb)
	if args[0] == "plan" {
		d.saved(t, r, policies, flags)
		return
	}
	flags = append(append(flags, args[1:]...), "--auto-approve")
	r.Shuffle(len(flags), func(i, j int) { flags[i], flags[j] = flags[j], flags[i] })
	d.fails(t, policies, append(args[:1], flags...)...)
}

// central is a directory with policies.
func (d *denied) central(t *testing.T, policies string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "org.policy.hcl"), []byte(policies), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// saved tries a saved plan: one that is denied, or one that was made before its policies.
func (d *denied) saved(t *testing.T, r *rand.Rand, policies string, flags []string) {
	t.Helper()
	path := filepath.Join(d.dir, "saved.plan")
	_ = os.Remove(path)
	var applying []string
	for _, flag := range flags {
		if strings.HasPrefix(flag, "--policy-dir") || strings.HasPrefix(flag, "--override") {
			applying = append(applying, flag)
		}
	}
	if r.IntN(2) == 0 {
		d.fails(t, policies, append([]string{"plan", "--out=saved.plan"}, flags...)...)
	} else {
		beside, err := os.ReadFile(filepath.Join(d.dir, "org.policy.hcl"))
		d.declare(t, "")
		_, _, _ = frayIn(t, d.dir, "plan", "--out=saved.plan")
		if err == nil {
			d.declare(t, string(beside))
		}
	}
	if _, err := os.Stat(path); err == nil {
		d.fails(t, policies, append([]string{"apply", "saved.plan"}, applying...)...)
	}
}

// fails runs a command, which must exit with 1 and change nothing.
func (d *denied) fails(t *testing.T, policies string, args ...string) {
	t.Helper()
	stdout, stderr, code := frayIn(t, d.dir, args...)
	if code != 1 {
		t.Errorf("fray %s exits %d, want 1:\n%s%s\nwith %s", strings.Join(args, " "), code, stdout, stderr, policies)
	}
	if now := d.accepted(t); !reflect.DeepEqual(now, d.before) {
		t.Fatalf("fray %s has changed the state from %+v to %+v:\n%s%s\nwith %s", strings.Join(args, " "), d.before, now, stdout, stderr, policies)
	}
}
