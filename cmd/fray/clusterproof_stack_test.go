package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// clusterConfig is a reservation of warm machines and a job that launches
// children onto them.
const clusterConfig = `
reservation "pool" {
  min {
    cpu    = 1
    slices = %[1]d
  }
}
job "parent" {
  command = [%[2]q, "` + clusterTaskWord + `", "parent", %[3]q, "%[1]d"]
}
`

// clusterProof is a stack whose job.parent launches children while what it
// relies on is killed.
type clusterProof struct {
	*proofStack
	notes    string // where tasks and test meet, see clusterTaskWord
	applied  string // what apply printed
	children int
	watches  []*exec.Cmd
	flags    []string // of watches
}

// newClusterProof applies the stack and waits for its parent. Its store is a
// bucket's if there is one. at is the stack's directory, "" for one of its own.
func newClusterProof(t *testing.T, bucket *emulator, at string, children int) *clusterProof {
	t.Helper()
	stack := newProofStack(t, bucket)
	if at != "" {
		stack.dir = at
	}
	return stack.cluster(t, children)
}

// cluster makes a stack one of the cluster proofs.
func (s *proofStack) cluster(t *testing.T, children int) *clusterProof {
	t.Helper()
	p := &clusterProof{proofStack: s, notes: t.TempDir(), children: children}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, fmt.Sprintf(clusterConfig, children, self, p.notes))
	t.Cleanup(func() { p.explain(t) })
	p.applied = p.must(t, "apply", "--auto-approve").stdout
	return p
}

// explain shows what the processes of a failed proof have said.
func (p *clusterProof) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	t.Logf("apply:\n%s", p.applied)
	logs, _ := filepath.Glob(filepath.Join(p.notes, "watch-*.log"))
	for _, path := range append(logs, filepath.Join(p.notes, "starts"), filepath.Join(p.notes, "told")) {
		data, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", filepath.Base(path), data)
	}
}

// watch starts one more controller.
func (p *clusterProof) watch(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	out, err := os.Create(filepath.Join(p.notes, fmt.Sprintf("watch-%d.log", len(p.watches))))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := p.command(t, env, append([]string{"watch", "--http", "off"}, p.flags...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // which may have happened
		<-gone
	})
	p.watches = append(p.watches, cmd)
	return cmd
}

// leader is the process id of the watch that leads, as the store says.
func (p *clusterProof) leader(t *testing.T) (int, error) {
	st, err := p.store(t)
	if err != nil {
		return 0, err
	}
	lease, err := store.ReadLease(t.Context(), st)
	if err != nil {
		return 0, err
	}
	for _, w := range p.watches {
		if w.Process.Pid == lease.PID && letter(lease.PID) != 'Z' && !lease.Released {
			return lease.PID, nil
		}
	}
	return 0, fmt.Errorf("no controller leads: the lease is that of pid %d", lease.PID)
}

// awaitLeader waits for a watch that leads and is not one.
func (p *clusterProof) awaitLeader(t *testing.T, but int) int {
	t.Helper()
	var pid int
	if err := within(proofPatience, func() (err error) {
		pid, err = p.leader(t)
		if err == nil && pid == but {
			err = fmt.Errorf("pid %d still leads", pid)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return pid
}

// allow makes a file that a task waits for.
func (p *clusterProof) allow(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.notes, what), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// noted are the lines of one of the tasks' files that begin so.
func (p *clusterProof) noted(file, prefix string) []string {
	data, _ := os.ReadFile(filepath.Join(p.notes, file)) // none yet
	lines := strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, prefix) })
}

// awaitNote returns the first line of a file that begins so.
func (p *clusterProof) awaitNote(t *testing.T, file, prefix string) string {
	t.Helper()
	var found []string
	if err := within(proofPatience, func() error {
		if found = p.noted(file, prefix); len(found) == 0 {
			return fmt.Errorf("no task has noted %q in %s", prefix, file)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// pid waits for an attempt of a task to start and returns its process id.
func (p *clusterProof) pid(t *testing.T, name string, attempt int) int {
	t.Helper()
	words := strings.Fields(p.awaitNote(t, "starts", fmt.Sprintf("%s %d ", name, attempt)))
	pid, err := strconv.Atoi(words[2])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// document is the state as it stands.
func (p *clusterProof) document(t *testing.T) *state.Document {
	t.Helper()
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	doc, _, err := apply.LoadState(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// endpoints are those in endpoints.json, each as its name and attempt.
func (p *clusterProof) endpoints(t *testing.T) ([]string, error) {
	st, err := p.store(t)
	if err != nil {
		return nil, err
	}
	object, err := st.Get(t.Context(), store.EndpointsKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var saved struct {
		Endpoints []struct {
			Name    string `json:"name"`
			Attempt int    `json:"attempt"`
		} `json:"endpoints"`
	}
	err = json.Unmarshal(object.Data, &saved)
	var names []string
	for _, e := range saved.Endpoints {
		names = append(names, fmt.Sprintf("%s %d", e.Name, e.Attempt))
	}
	return names, err
}

// awaitEndpoint waits until a name is registered by an attempt, or is not.
func (p *clusterProof) awaitEndpoint(t *testing.T, name string, want bool) {
	t.Helper()
	if err := within(proofPatience, func() error {
		names, err := p.endpoints(t)
		if err == nil && slices.Contains(names, name) != want {
			err = fmt.Errorf("registered are %q; want %q among them: %v", names, name, want)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// host is where a task runs, by its process id.
func (p *clusterProof) host(t *testing.T, pid int) state.HostReport {
	t.Helper()
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	var found state.HostReport
	if err := within(proofPatience, func() error {
		listed, err := st.List(t.Context(), store.HostsPrefix)
		if err != nil {
			return err
		}
		for _, each := range listed {
			object, err := st.Get(t.Context(), each.Key)
			if err != nil {
				continue // gone meanwhile
			}
			var r state.HostReport
			if json.Unmarshal(object.Data, &r) == nil && r.Task != nil && r.Task.PID == pid {
				found = r
				return nil
			}
		}
		return fmt.Errorf("no host reports pid %d", pid)
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// finish lets all tasks end and shows that every child has succeeded, in the
// attempts wanted (1 for those not named, any number for those of anyAttempts)
// and with one process for each of them, and that nothing is left registered.
func (p *clusterProof) finish(t *testing.T, attempts map[string]int) {
	t.Helper()
	for i := range p.children {
		name := fmt.Sprintf("child-%d", i)
		p.allow(t, "end-"+name)
		if told := p.awaitNote(t, "told", "ended "+name+" "); !strings.HasSuffix(told, clusterapi.JobStatus_JOB_STATUS_SUCCEEDED.String()) {
			t.Errorf("the parent was told %q, want that it succeeded", told)
		}
	}
	p.allow(t, "over")
	p.checkStarts(t, attempts)
	if over := p.noted("overlaps", ""); len(over) > 0 {
		t.Errorf("two processes of one task ran together: %q", over)
	}
	if err := within(proofPatience, func() error {
		names, err := p.endpoints(t)
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("all tasks have ended, and registered are %q", names)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	p.checkRecords(t, attempts)
}

// anyAttempts is for jobs of which it is open how often they were tried.
const anyAttempts = -1

// checkStarts shows that each attempt was started once.
func (p *clusterProof) checkStarts(t *testing.T, attempts map[string]int) {
	t.Helper()
	started := map[string][]string{} // attempts, by name
	for _, line := range p.noted("starts", "") {
		words := strings.Fields(line)
		if slices.Contains(started[words[0]], words[1]) {
			t.Errorf("attempt %s of %s was started twice", words[1], words[0])
		}
		started[words[0]] = append(started[words[0]], words[1])
	}
	for i := -1; i < p.children; i++ {
		name := "parent"
		if i >= 0 {
			name = fmt.Sprintf("child-%d", i)
		}
		want := max(1, attempts[name])
		if got := started[name]; attempts[name] != anyAttempts && len(got) != want {
			t.Errorf("the attempts %q of %s were started, want %d of them", got, name, want)
		}
	}
}

// checkRecords shows that the state has each attempt once. It is saved a moment
// after what it says is known.
func (p *clusterProof) checkRecords(t *testing.T, attempts map[string]int) {
	t.Helper()
	if err := within(proofPatience, func() error {
		var wrong []error
		recorded := 0
		for addr, j := range p.document(t).Jobs {
			recorded++
			name := addr.Name
			if j.Launch != nil {
				name = j.Launch.Name
			}
			want := max(1, attempts[name])
			if attempts[name] == anyAttempts {
				want = j.Attempt
			}
			if j.Attempt != want || len(j.Attempts) != want || j.Status != schema.JobSucceeded {
				wrong = append(wrong, fmt.Errorf("%s is %s in attempt %d and has %d on record, want %s and %d",
					addr, j.Status, j.Attempt, len(j.Attempts), schema.JobSucceeded, want))
			}
		}
		if recorded != p.children+1 {
			wrong = append(wrong, fmt.Errorf("%d jobs are on record, want the parent and %d children", recorded, p.children))
		}
		return errors.Join(wrong...)
	}); err != nil {
		t.Error(err)
	}
}

// ambush has the emulator kill a process in the middle of the first request
// that is right, which is then served or lost. What it returns is closed after.
func (e *emulator) ambush(pid int, serve bool, right func(r *http.Request) bool) <-chan struct{} {
	sprung := make(chan struct{})
	var once sync.Once
	between := func(w http.ResponseWriter, r *http.Request) bool {
		if !right(r) {
			return false
		}
		hit := false
		once.Do(func() {
			hit = true
			_ = syscall.Kill(pid, syscall.SIGKILL) // shown by who leads next
			if serve {
				e.lose(w, r)
			} else {
				e.refuse(w, r)
			}
			close(sprung)
		})
		return hit
	}
	e.between.Store(&between)
	return sprung
}

// putsJob reports whether a request writes an object under a key or prefix that
// names a job.
func putsJob(r *http.Request, key, job string) bool {
	return (isPut(r, key) || isUnder(r, key)) && bytes.Contains(uploaded(r), []byte(job))
}
