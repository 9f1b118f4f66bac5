package local_test

import (
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/schema"
)

// pidIn waits until a task has written a pid into a file of its directory.
func (p *place) pidIn(name string) int {
	p.t.Helper()
	pid := 0
	eventually(p.t, "a pid in "+name, func() bool {
		data, err := os.ReadFile(filepath.Join(p.work, name))
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	return pid
}

func (p *place) wantGone(pids ...int) {
	p.t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			p.t.Errorf("process %d is still alive", pid)
			p.kill(pid)
		}
	}
}

const sleeper = `echo $$ > pid-$FRAY_TASK_INDEX
setsid sh -c 'echo $$ > escaped-'$FRAY_TASK_INDEX'; exec sleep 1000' &
exec sleep 1000`

// sleep brings a slice up and runs sleepers on its hosts. It returns their processes.
func (p *place) sleep(provider *local.Provider, spec schema.SliceSpec) []int {
	p.t.Helper()
	p.up(provider, spec)
	p.assign(spec, 1, sleeper)
	p.awaitTasks(spec, 1, schema.TaskRunning)
	var pids []int
	for n := range spec.Hosts {
		pids = append(pids, p.pidIn("pid-"+strconv.Itoa(n)), p.pidIn("escaped-"+strconv.Itoa(n)))
	}
	return pids
}

func TestSliceRunsTasks(t *testing.T) {
	p := newPlace(t)
	four := spec("four", 4)
	began := time.Now()
	p.up(p.provider(), four)
	reported := time.Since(began)
	p.assign(four, 1, "exec sleep 1000")
	p.awaitTasks(four, 1, schema.TaskRunning)
	t.Logf("4 hosts reported in after %s, ran their tasks after %s", reported, time.Since(began))
	seen := map[string]bool{}
	for n := range 4 {
		h, _ := p.report("four", n)
		addr, err := netip.ParseAddr(h.Address)
		if err != nil || !addr.IsLoopback() || seen[h.Address] {
			t.Errorf("host %d has address %s", n, h.Address)
		}
		seen[h.Address] = isProc() // elsewhere all hosts share one
	}
}

func TestDeleteEndsTasks(t *testing.T) {
	p := newPlace(t)
	config := p.config()
	config.DeleteGrace = time.Hour // which a delete does not wait for
	provider, err := local.New(config)
	if err != nil {
		t.Fatal(err)
	}
	two := spec("two", 2)
	pids := p.sleep(provider, two)
	if err := provider.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slice to be gone", func() bool {
		inventory, err := provider.Inventory(t.Context(), two.Stack)
		return err == nil && len(inventory.Slices) == 0
	})
	p.wantGone(pids...)
}

func TestDeleteFindsWhatALostHostLeft(t *testing.T) {
	for _, test := range []struct {
		name  string
		locks []string // whose holders are killed first
	}{
		{"agent", []string{"agent.lock"}},
		{"supervisor", []string{"task.lock"}},
		{"whole host", []string{"agent.lock", "task.lock"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			provider, one := p.provider(), spec("one", 1)
			pids := p.sleep(provider, one)
			for _, lock := range test.locks {
				p.kill(p.lockHolder("one", 0, lock))
			}
			p.down(provider, one)
			p.wantGone(pids...)
		})
	}
}

func TestStubbornSliceIsKilled(t *testing.T) {
	p := newPlace(t)
	provider, err := local.New(local.Config{
		Root: p.root, Executable: os.Args[0], StoreLocation: p.store.Location(), WorkDir: p.work,
		DeleteGrace: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	one := spec("one", 1)
	pids := p.sleep(provider, one)
	agent := p.lockHolder("one", 0, "agent.lock")
	p.stop(agent) // it answers no signal but one
	p.down(provider, one)
	p.wantGone(append(pids, agent)...)
}

func TestLostSliceIsRepaired(t *testing.T) {
	p := newPlace(t)
	provider, two := p.provider(), spec("two", 2)
	pids := p.sleep(provider, two)
	for n := range 2 {
		p.kill(p.lockHolder("two", n, "agent.lock"))
		p.kill(p.lockHolder("two", n, "task.lock"))
	}
	eventually(t, "both hosts to be down", func() bool {
		inventory, err := provider.Inventory(t.Context(), two.Stack)
		if err != nil || len(inventory.Slices) != 1 {
			t.Fatalf("inventory is %+v, %v", inventory, err)
		}
		return slices.Equal(inventory.Slices[0].Down, []int{0, 1})
	})
	if err := provider.Create(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	p.awaitTasks(two, 1, schema.TaskExitUnknown)
	p.wantGone(pids...)
}

func TestKilledAgentsTaskGoesOn(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	p.sleep(provider, one)
	before, _ := p.report("one", 0)
	p.kill(before.PID)
	// A dead process may hold its lock for a while yet: until its last thread is gone.
	eventually(t, "the host to be down", func() bool {
		inventory, err := provider.Inventory(t.Context(), one.Stack)
		if err != nil || len(inventory.Slices) != 1 {
			t.Fatalf("inventory is %+v, %v", inventory, err)
		}
		return slices.Equal(inventory.Slices[0].Down, []int{0})
	})
	if err := provider.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new agent", func() bool {
		h, _ := p.report("one", 0)
		return h.Boot != before.Boot && h.Task != nil && h.Task.State == schema.TaskRunning
	})
	after, _ := p.report("one", 0)
	if after.Task.PID != before.Task.PID || after.Address != before.Address {
		t.Errorf("host was %+v, is %+v", before, after)
	}
}

// TestRenamedSlicesAreDown: what serves the old directory does not serve the new one,
// although it lives for a moment and holds the locks that moved along.
func TestRenamedSlicesAreDown(t *testing.T) {
	p := newPlace(t)
	one := spec("one", 1)
	pids := p.sleep(p.provider(), one)
	before, _ := p.report("one", 0)
	old := p.root
	p.root = filepath.Join(filepath.Dir(old), "renamed")
	if err := os.Rename(old, p.root); err != nil {
		t.Fatal(err)
	}
	provider := p.provider()
	inventory, err := provider.Inventory(t.Context(), one.Stack)
	if err != nil || len(inventory.Slices) != 1 || !slices.Equal(inventory.Slices[0].Down, []int{0}) {
		t.Fatalf("inventory is %+v, %v, want that host 0 is down", inventory, err)
	}
	eventually(t, "an agent of the new place", func() bool {
		if err := provider.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		status, there, err := provider.Get(t.Context(), one)
		if err != nil || !there {
			t.Fatalf("got %+v, %v, %v", status, there, err)
		}
		h, _ := p.report("one", 0)
		return len(status.Down) == 0 && status.Agents[0] == h.PID
	})
	// Its first word of the task is that it is over.
	after, _ := p.report("one", 0)
	if after.Boot == before.Boot || after.Task == nil || after.Task.State != schema.TaskExitUnknown {
		t.Errorf("the new agent reports %+v, with task %+v", after, after.Task)
	}
	p.wantGone(pids...)
	p.down(provider, one) // what ends it at the old place finds nothing
}

func TestRemovedByHand(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	pids := p.sleep(provider, one)
	h, _ := p.report("one", 0)
	if err := os.RemoveAll(filepath.Join(p.root, "slices", "one")); err != nil {
		t.Fatal(err)
	}
	inventory, err := provider.Inventory(t.Context(), one.Stack)
	if err != nil || len(inventory.Slices) != 0 {
		t.Errorf("inventory is %+v, %v", inventory, err)
	}
	eventually(t, "its processes to end", func() bool {
		return !slices.ContainsFunc(append(pids, h.PID), alive)
	})
}

func TestProcessesWithoutRecordAreAnError(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	p.up(provider, one)
	record := filepath.Join(p.root, "slices", "one", "slice.json")
	if err := os.Rename(record, record+".away"); err != nil {
		t.Fatal(err)
	}
	if inventory, err := provider.Inventory(t.Context(), one.Stack); err == nil {
		t.Errorf("inventory is %+v without an error", inventory)
	}
	if err := os.Rename(record+".away", record); err != nil {
		t.Fatal(err)
	}
}

func TestForeignSlicesAreCounted(t *testing.T) {
	p := newPlace(t)
	provider, mine, theirs := p.provider(), spec("mine", 1), spec("theirs", 1)
	theirs.Stack = "other"
	p.up(provider, mine)
	p.up(provider, theirs)
	inventory, err := provider.Inventory(t.Context(), mine.Stack)
	if err != nil || inventory.Foreign != 1 || len(inventory.Slices) != 1 {
		t.Errorf("inventory is %+v, %v", inventory, err)
	}
}

func TestAgentsGetNothingOfTheCommandLine(t *testing.T) {
	t.Setenv("FRAY_VAR_token", "secret")
	t.Setenv("KEPT", "yes")
	p := newPlace(t)
	one := spec("one", 1)
	p.up(p.provider(), one)
	p.assign(one, 1, `[ -z "$FRAY_VAR_token" ] && [ "$KEPT" = yes ] && [ "$PWD" = '`+p.work+`' ]`)
	p.awaitTasks(one, 1, schema.TaskSucceeded)
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []local.Config{{Root: "relative", StoreLocation: "/s"}, {Root: "/root"}} {
		if _, err := local.New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// An agent holds its lock for as long as it lives, however often its memory is
// collected: a lock that was released means a dead agent.
func TestAgentKeepsItsLock(t *testing.T) {
	t.Setenv("GOGC", "1")
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	p.up(provider, one)
	for generation := range int64(10) {
		p.assign(one, generation+1, "exit 0")
		p.awaitTasks(one, generation+1, schema.TaskSucceeded)
	}
	inventory, err := provider.Inventory(t.Context(), one.Stack)
	if err != nil || len(inventory.Slices) != 1 || len(inventory.Slices[0].Down) > 0 {
		t.Errorf("inventory is %+v, %v", inventory, err)
	}
}

// Who reads what fray apply writes must not wait for the agents.
func TestAgentsInheritNoPipes(t *testing.T) {
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil { // without close-on-exec, as a shell does
		t.Fatal(err)
	}
	r := os.NewFile(uintptr(pipe[0]), "pipe")
	defer r.Close()
	p := newPlace(t)
	p.up(p.provider(), spec("one", 1))
	if err := syscall.Close(pipe[1]); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, r)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("an agent keeps a pipe of its maker's parent open")
	}
}
