package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

// TestClusterAgentCutOff cuts one agent off from the store. What runs on its host
// goes on, and what ends there is known: the host is connected to the controller, and
// so does not count as lost. TestClusterPartition cuts both ways (fact 21).
func TestClusterAgentCutOff(t *testing.T) {
	t.Parallel()
	bucket := emulatorWith(t, false)
	p := newClusterProof(t, bucket, "", 3)
	p.watch(t)
	p.awaitLeader(t, 0)
	pids := make([]int, p.children)
	for i := range pids {
		child := fmt.Sprintf("child-%d", i)
		p.allow(t, "go-"+child)
		pids[i] = p.pid(t, child, 1)
		p.awaitNote(t, "told", "registered "+child+" 1")
	}

	away := p.cutOff(t, pids[0])
	away.refuses(t)
	away.reconnect()
	if got := p.host(t, pids[0]).Task.Attempt; got != 1 {
		t.Errorf("after it was cut off, the host of child-0 reports attempt %d, want 1", got)
	}

	away = p.cutOff(t, pids[1])
	p.allow(t, "end-child-1")
	if err := within(proofPatience, func() error {
		if syscall.Kill(pids[1], 0) == nil && letter(pids[1]) != 'Z' {
			return errors.New("child-1 does not end")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	away.refuses(t)
	away.reconnect()
	p.awaitNote(t, "starts", "child-1 1")

	p.finish(t, nil) // all in their first attempts
}

// cut is an agent without a store.
type cut struct {
	bucket  *emulator
	agent   int
	owned   sync.Map // of net.Conn: whether it is the agent's, a bool
	refused atomic.Int64
}

// cutOff breaks all connections to the bucket of the agent that has a task.
func (p *clusterProof) cutOff(t *testing.T, task int) *cut {
	t.Helper()
	c := &cut{bucket: p.bucket, agent: p.host(t, task).PID}
	between := func(w http.ResponseWriter, r *http.Request) bool {
		if !c.ofTheAgent(r) {
			return false
		}
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		c.refused.Add(1)
		return true
	}
	p.bucket.between.Store(&between)
	return c
}

// ofTheAgent reports whether the agent sent a request. It looks a connection up
// once: the kernel's table has a line for every connection that ended in the
// last minute too, and on a busy machine it takes milliseconds to read.
func (c *cut) ofTheAgent(r *http.Request) bool {
	conn := connectionOf(r)
	if known, ok := c.owned.Load(conn); ok {
		return known.(bool)
	}
	is := owns(c.agent, r.RemoteAddr)
	c.owned.Store(conn, is)
	return is
}

func (c *cut) reconnect() { c.bucket.between.Store(nil) }

// refuses returns when the agent has tried often.
func (c *cut) refuses(t *testing.T) {
	t.Helper()
	if err := within(proofPatience, func() error {
		if n := c.refused.Load(); n < 10 {
			return fmt.Errorf("the agent has tried %d times", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// owns reports whether a connection's other end, an IPv4 address of this
// machine, is a process's.
func owns(pid int, address string) bool {
	host, port, err := net.SplitHostPort(address)
	number, err2 := strconv.Atoi(port)
	ip := net.ParseIP(host).To4()
	if err != nil || err2 != nil || ip == nil {
		return false
	}
	local := fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString([]byte{ip[3], ip[2], ip[1], ip[0]})), number)
	table, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(table)) {
		if !strings.Contains(line, local) {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 10 || words[1] != local {
			continue
		}
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range open {
			if name, _ := os.Readlink(fd); name == "socket:["+words[9]+"]" {
				return true
			}
		}
	}
	return false
}

// TestClusterFullDisks fills the disk that everything is on, or that of all hosts
// only, and launches. With space again the launch is carried out, once.
func TestClusterFullDisks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		bucket bool // the store is elsewhere
	}{
		{"of the store", false},
		{"of the hosts", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := mounted(t, "size=8m")
			var bucket *emulator
			if c.bucket {
				bucket = emulatorWith(t, false)
			}
			p := newClusterProof(t, bucket, dir, 2)
			p.watch(t)
			p.awaitLeader(t, 0)
			parent := p.pid(t, "parent", 1)
			p.allow(t, "go-child-0")
			early := p.pid(t, "child-0", 1)
			p.awaitNote(t, "told", "registered child-0 1")
			filler := filepath.Join(dir, "filler")
			fill(t, filler)
			p.allow(t, "go-child-1")
			if c.bucket {
				p.awaitUse(t)
			} else {
				for _, word := range []string{"no space left", "cannot lead"} { // until it has lost its lease
					p.awaitWord(t, "watch-0.log", word)
				}
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			p.awaitNote(t, "told", "registered child-1 ")
			for name, pid := range map[string]int{"parent": parent, "child-0": early} {
				if err := syscall.Kill(pid, 0); err != nil {
					t.Errorf("%s, pid %d: %v", name, pid, err)
				}
			}
			p.finish(t, map[string]int{"child-1": anyAttempts})
		})
	}
}

// awaitWord waits for a text in a file of the tasks' and the watches'.
func (p *clusterProof) awaitWord(t *testing.T, file, word string) {
	t.Helper()
	if err := within(proofPatience, func() error {
		data, err := os.ReadFile(filepath.Join(p.notes, file))
		if err == nil && !bytes.Contains(data, []byte(word)) {
			err = fmt.Errorf("%s has no %q:\n%s", file, word, data)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// awaitUse waits until child-1 was assigned to a host and that has reported
// some more times.
func (p *clusterProof) awaitUse(t *testing.T) {
	t.Helper()
	p.awaitNote(t, "told", "answered child-1 ")
	st, err := p.store(t)
	if err != nil {
		t.Fatal(err)
	}
	var from map[string]uint64
	if err := within(proofPatience, func() error {
		listed, err := st.List(t.Context(), store.AssignPrefix)
		if err != nil {
			return err
		}
		for _, each := range listed {
			object, err := st.Get(t.Context(), each.Key)
			if err == nil && bytes.Contains(object.Data, []byte("child-1")) {
				from = p.sequences(t)
				return nil
			}
		}
		return errors.New("child-1 is not assigned")
	}); err != nil {
		t.Fatal(err)
	}
	if err := within(proofPatience, func() error {
		now := p.sequences(t)
		for slice, seq := range from {
			if now[slice] < seq+3 {
				return fmt.Errorf("%s reports no more: %d, was %d", slice, now[slice], seq)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// sequences are the numbers of the last reports, by slice.
func (p *clusterProof) sequences(t *testing.T) map[string]uint64 {
	t.Helper()
	found := map[string]uint64{}
	for _, r := range p.hosts(t) {
		found[r.Slice] = r.Seq
	}
	return found
}
