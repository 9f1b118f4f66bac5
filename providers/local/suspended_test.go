package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/providers/local"
	"github.com/fray-ml/fray/schema"
)

// creatorMain makes a slice; the arguments are a local.Config and a spec.
func creatorMain(args []string) error {
	var c local.Config
	var s schema.SliceSpec
	if err := errors.Join(json.Unmarshal([]byte(args[0]), &c), json.Unmarshal([]byte(args[1]), &s)); err != nil {
		return err
	}
	provider, err := local.New(c)
	if err != nil {
		return err
	}
	return provider.Create(context.Background(), s)
}

// creator is a process of its own that makes a slice, and comes to a halt at the
// named pipe that some file is. It is suspended there, and what it has said is
// known at its end.
type creator struct {
	*exec.Cmd
	p    *place
	pipe string
	said strings.Builder
}

// suspendedCreator is suspended with its locks, at an agent's log: before there is
// an agent.
func (p *place) suspendedCreator(spec schema.SliceSpec) *creator {
	p.t.Helper()
	c := &creator{p: p, pipe: filepath.Join(p.hostDir(spec.Name, 0), "agent.log")}
	if err := errors.Join(os.MkdirAll(filepath.Dir(c.pipe), 0o700), syscall.Mkfifo(c.pipe, 0o600)); err != nil {
		p.t.Fatal(err)
	}
	config, err := json.Marshal(p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	asked, err := json.Marshal(spec)
	if err != nil {
		p.t.Fatal(err)
	}
	c.Cmd = exec.CommandContext(p.t.Context(), os.Args[0], "create", string(config), string(asked))
	c.Stderr = &c.said
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it may have been waited for
	})
	eventually(p.t, "the creator to hold the agent's lock", func() bool {
		data, err := os.ReadFile(filepath.Join(p.hostDir(spec.Name, 0), "agent.lock"))
		return err == nil && len(data) > 0
	})
	p.stop(c.Process.Pid)
	eventually(p.t, "the creator to be suspended", func() bool { return isSuspended(p.t.Context(), c.Process.Pid) })
	return c
}

// goOn wakes the creator up and waits for its end.
func (c *creator) goOn() error {
	c.p.signal(c.Process.Pid, syscall.SIGCONT)
	reader, err := os.OpenFile(c.pipe, os.O_RDWR, 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.p.t.Fatal(err)
	}
	defer reader.Close()
	return c.Wait()
}

// unblock puts a file in the place of the pipe: others do not come to a halt there.
func (c *creator) unblock() {
	c.p.t.Helper()
	aside := filepath.Join(c.p.t.TempDir(), "pipe")
	if err := os.Rename(c.pipe, aside); err != nil {
		c.p.t.Fatal(err)
	}
	c.pipe = aside
}

// A process that is suspended while it makes a slice, before its agent lives, does
// not keep others from making it: the slice does not count as one that comes up.
func TestCreatorIsSuspended(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	creator := p.suspendedCreator(one)
	inventory, err := provider.Inventory(t.Context(), one.Stack)
	if err != nil || len(inventory.Slices) != 1 || len(inventory.Slices[0].Down) != 1 {
		t.Fatalf("inventory is %+v, %v; want a slice whose host is down", inventory, err)
	}
	creator.unblock()
	p.up(provider, one)
	agent := p.lockHolder("one", 0, "agent.lock")
	if err := creator.goOn(); err != nil {
		t.Errorf("the creator that woke up: %v: %s", err, creator.said.String())
	}
	p.wantOneAgent(provider, one, agent)
}

// wantOneAgent shows that a slice's agent is still the one that it was, and that no
// other has come.
func (p *place) wantOneAgent(provider *local.Provider, spec schema.SliceSpec, pid int) {
	p.t.Helper()
	eventually(p.t, "one agent", func() bool {
		found := p.agents(spec.Name)
		return len(found) == 1 && found[0] == pid
	})
	inventory, err := provider.Inventory(p.t.Context(), spec.Stack)
	if err != nil || len(inventory.Slices) != 1 || len(inventory.Slices[0].Down) > 0 {
		p.t.Errorf("inventory is %+v, %v; want a slice that is up", inventory, err)
	}
}

// A process that is suspended while it chooses the addresses of a slice, wherever that
// is, keeps no other slice from its addresses.
func TestSuspendedWhileItChoosesAddresses(t *testing.T) {
	p := newPlace(t)
	// A lock that names no holder: it was suspended right after it took the lock, or
	// right before it lets go.
	for _, name := range []string{"one", "_addresses"} {
		path := filepath.Join(p.root, "locks", name+".lock")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		file, err := filelock.Take(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	provider, two := p.provider(), spec("two", 2)
	if err := provider.Create(ctx, two); err != nil {
		t.Fatalf("create another slice: %v", err)
	}
	p.up(provider, two)
}

// What a process left that died while it chose addresses is removed, so that they are
// free again.
func TestClaimsOfADeadCreatorAreReleased(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	p.up(provider, one)
	claims, err := filepath.Glob(filepath.Join(p.root, "addresses", "*"))
	if err != nil || len(claims) == 0 {
		t.Skipf("hosts have no addresses of their own here: %v", err)
	}
	p.down(provider, one)
	for name, dir := range map[string]string{"its directory is there": "slices/gone/hosts", "nothing else is left": "slices"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(p.root, dir), 0o700), os.WriteFile(claims[0], []byte("gone/0"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := provider.Inventory(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		p.up(provider, one)
		if owner, err := os.ReadFile(claims[0]); err != nil || string(owner) != "one/0" {
			t.Errorf("%s: the address is of %q, %v; want one/0", name, owner, err)
		}
		p.down(provider, one)
		if left, err := filepath.Glob(filepath.Join(p.root, "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
}

// A process that is suspended while it makes a slice does not keep others from deleting
// it, and brings nothing of it back when it continues.
func TestDeletedWhileItsCreatorIsSuspended(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	creator := p.suspendedCreator(one)
	creator.unblock()
	p.down(provider, one)
	_ = creator.goOn() // whether it finds out is a matter of where it was
	inventory, err := provider.Inventory(t.Context(), "")
	if err != nil || len(inventory.Slices) > 0 {
		t.Errorf("inventory is %+v, %v; want nothing", inventory, err)
	}
	eventually(t, "no agent", func() bool { return len(p.agents("one")) == 0 })
}

// An agent that dies counts as dead, also where who started it is suspended and
// still has what it handed on.
func TestAgentDiesWhileItsStarterIsSuspended(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	p.up(provider, one)
	agent := p.lockHolder("one", 0, "agent.lock")
	p.kill(agent)
	eventually(t, "the agent to be dead", func() bool { return !alive(agent) })
	lock := filepath.Join(p.hostDir("one", 0), "agent.lock")
	// A starter that has the lock's file open as it was handed on.
	file, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "agent", "--store", p.store.Location(), "--slice", "one", "--host", "0",
		"--dir", p.hostDir("one", 0), "--address", "127.0.0.1", "--simulated")
	cmd.Env = append(os.Environ(), "FRAY_AGENT_LOCK_FD=3")
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent to have its lock", func() bool {
		data, err := os.ReadFile(lock)
		return err == nil && json.Valid(data) && p.lockHolder("one", 0, "agent.lock") == cmd.Process.Pid
	})
	p.kill(cmd.Process.Pid)
	_ = cmd.Wait() // it was killed
	inventory, err := provider.Inventory(t.Context(), one.Stack)
	if err != nil || len(inventory.Slices) != 1 || len(inventory.Slices[0].Down) != 1 {
		t.Fatalf("inventory is %+v, %v; want a slice whose host is down", inventory, err)
	}
}

// What was left of a removal that was cut off is removed.
func TestCutOffRemovalGoesOn(t *testing.T) {
	p := newPlace(t)
	left := filepath.Join(p.root, "slices", ".gone-one-x", "hosts", "0")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.provider().Inventory(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(p.root, "slices")); err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}
