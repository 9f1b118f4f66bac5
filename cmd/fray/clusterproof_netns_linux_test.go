package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestClusterPartition cuts hosts off by their network, silently: packets vanish,
// and no connection is refused or closed. The parent's host loses the controller,
// then for a while the store, then a child's host loses both for longer than a
// host may be silent. What is promised: tasks go on through all of it; a launch
// that cannot be sent fails with an error to be tried again, and is carried out
// once; an attempt is replaced, once, when its host has been silent for 45 s, and
// two processes of one task never run together.
func TestClusterPartition(t *testing.T) {
	t.Parallel()
	parents, childs := newNetwork(t, 1), newNetwork(t, 2)
	p := newPartition(t, parents, childs)

	parent := p.pid(t, "parent", 1)
	p.allow(t, "go-child-0")
	p.awaitNote(t, "told", "registered child-0 1")

	// While the host is connected, it writes to the store once a minute.
	silentAt := p.awaitSilence(t, parent, 8*time.Second)

	// The controller is out of reach, the store is not.
	parents.cut(t, parents.api)
	p.awaitWordOf(t, parent, silentAt)
	p.allow(t, "go-child-1")
	t.Logf("a launch that cannot be sent: %s", p.awaitNote(t, "told", "again "))
	if sent := p.noted("told", "answered child-1"); len(sent) > 0 {
		t.Errorf("a launch was answered through a network that is down: %q", sent)
	}
	parents.reconnect(t, parents.api)
	p.awaitNote(t, "told", "answered child-1 ")
	p.awaitNote(t, "told", "registered child-1 1")

	// The store is out of reach for less than a host may be silent.
	parents.cut(t, parents.store)
	p.awaitSilence(t, parent, 8*time.Second)
	parents.reconnect(t, parents.store)
	p.allow(t, "go-child-2")
	p.awaitNote(t, "told", "registered child-2 1")
	if got := p.host(t, parent).Task; got.Attempt != 1 || syscall.Kill(parent, 0) != nil {
		t.Errorf("after its host was cut off for a while, the parent is pid %d in attempt %d, want %d in 1", got.PID, got.Attempt, parent)
	}

	// Both are, for longer.
	victim, pid := p.childIn(t, childs)
	childs.cut(t, childs.store)
	childs.cut(t, childs.api)
	p.awaitSilence(t, pid, 8*time.Second)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("%s ended when its host was cut off: %v", victim, err)
	}
	p.awaitNote(t, "told", "registered "+victim+" 2") // overlaps are noted by the task
	childs.reconnect(t, childs.store)
	childs.reconnect(t, childs.api)
	p.finish(t, map[string]int{victim: 2})
}

// TestClusterPartitionOfBothWaysEnds cuts a parent's and a child's host off from
// controller and store at once, for less than a host may be silent: nothing is ended,
// nothing starts twice, and attempts keep their numbers.
func TestClusterPartitionOfBothWaysEnds(t *testing.T) {
	t.Parallel()
	parents, childs := newNetwork(t, 3), newNetwork(t, 4)
	p := newPartition(t, parents, childs)
	parent := p.pid(t, "parent", 1)
	for _, name := range []string{"child-0", "child-1", "child-2"} {
		p.allow(t, "go-"+name)
		p.awaitNote(t, "told", "registered "+name+" 1")
	}
	victim, pid := p.childIn(t, childs)

	for _, n := range []*network{parents, childs} {
		n.cut(t, n.store)
		n.cut(t, n.api)
	}
	parentSilentAt := p.awaitSilence(t, parent, 8*time.Second)
	childSilentAt := p.awaitSilence(t, pid, 8*time.Second)
	for _, n := range []*network{parents, childs} {
		n.reconnect(t, n.store)
		n.reconnect(t, n.api)
	}
	p.awaitWordOf(t, parent, parentSilentAt)
	p.awaitWordOf(t, pid, childSilentAt)
	for name, want := range map[string]int{"parent": parent, victim: pid} {
		if got := p.host(t, want).Task; got.Attempt != 1 || syscall.Kill(want, 0) != nil {
			t.Errorf("after both ways were cut, %s is pid %d in attempt %d, want %d in 1", name, got.PID, got.Attempt, want)
		}
	}
	p.finish(t, nil) // all in their first attempts
}

// partition is a stack with the parent's host in one network, a child's in
// another, and the rest, the controller among it, outside.
type partition struct {
	*clusterProof
	parents, childs *network
	port            string // of the bucket, at all addresses
}

// newPartition is one whose jobs have their hosts, and nothing cut off yet.
func newPartition(t *testing.T, parents, childs *network) *partition {
	t.Helper()
	address := meetingPoint(t, parents, childs)
	bucket := emulatorWith(t, false)
	s := newProofStack(t, bucket)
	s.program = parents.program(t)
	p := &partition{parents: parents, childs: childs, port: everywhere(t, bucket)}
	s.env = append(s.env, p.bucketAt(parents.store))
	p.clusterProof = s.cluster(t, 3)
	p.flags = []string{"--advertise", address}
	p.spread(t)
	return p
}

// spread brings the hosts where they are wanted: agents are where the fray was
// that started them.
func (p *partition) spread(t *testing.T) {
	t.Helper()
	p.killIdleAgents(t)
	p.program, p.env = p.childs.program(t), append(p.env, p.bucketAt(p.childs.store))
	starter := p.watch(t)
	p.awaitIdle(t, func(pids []int) error {
		if i := slices.IndexFunc(pids, func(pid int) bool { return !p.childs.has(pid) }); i >= 0 {
			p.kill(t, pids[i]) // a report may have named the process before it
			return fmt.Errorf("the agent with pid %d is not in the network", pids[i])
		}
		return nil
	})
	p.kill(t, starter.Process.Pid)
	moved := p.idle(t)
	p.kill(t, moved[1:]...)
	p.program, p.env = "", append(p.env, p.bucketAt("127.0.0.1"))
	p.watch(t)
	p.awaitIdle(t, func(pids []int) error {
		for _, pid := range pids {
			if slices.Contains(moved[1:], pid) {
				return fmt.Errorf("pid %d was killed", pid)
			}
			if pid != moved[0] && p.childs.has(pid) {
				return fmt.Errorf("pid %d is still in the network", pid)
			}
		}
		return nil
	})
	if agent := p.host(t, p.pid(t, "parent", 1)).PID; !p.parents.has(agent) {
		t.Fatalf("the parent's agent, pid %d, is not in its network: the proof proves nothing", agent)
	}
}

// awaitIdle waits until there are as many as children, and all are right.
func (p *partition) awaitIdle(t *testing.T, right func(pids []int) error) {
	t.Helper()
	if err := within(proofPatience, func() error {
		pids := p.idle(t)
		if len(pids) != p.children {
			return fmt.Errorf("%d agents are idle, want %d", len(pids), p.children)
		}
		return right(pids)
	}); err != nil {
		t.Fatal(err)
	}
}

// childIn is the child whose host is in a network, and its process.
func (p *partition) childIn(t *testing.T, n *network) (name string, pid int) {
	t.Helper()
	for i := range p.children {
		name := fmt.Sprintf("child-%d", i)
		if pid := p.pid(t, name, 1); n.has(p.host(t, pid).PID) {
			return name, pid
		}
	}
	t.Fatal("no child is in the network")
	return "", 0
}

// awaitSilence waits until the host of a task has reported nothing for a time, and returns the
// number of its last report.
func (p *partition) awaitSilence(t *testing.T, task int, d time.Duration) uint64 {
	t.Helper()
	last, since := p.host(t, task).Seq, time.Now()
	if err := within(proofPatience, func() error {
		if seq := p.host(t, task).Seq; seq != last {
			last, since = seq, time.Now()
		}
		if quiet := time.Since(since); quiet < d {
			return fmt.Errorf("the host of pid %d is silent for %s", task, quiet)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return last
}

// awaitWordOf waits until the host of a task has reported after its report of a number. The number
// is taken before what brings the host back: the next report after that one is a minute later.
func (p *partition) awaitWordOf(t *testing.T, task int, last uint64) {
	t.Helper()
	if err := within(proofPatience, func() error {
		if p.host(t, task).Seq == last {
			return fmt.Errorf("the host of pid %d reports nothing", task)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// network is a network namespace with two ways out of it: one to the store, one
// to the controller.
type network struct {
	number     int // another one for each of this process
	name       string
	store, api string // the addresses outside
	inner      string // the interface of the way to the controller
	id         string // of the namespace, as /proc names it
}

// newNetwork makes one. Where that is not allowed, the test is skipped.
func newNetwork(t *testing.T, number int) *network {
	t.Helper()
	tag := fmt.Sprintf("fray%dx%d", os.Getpid(), number)
	n := &network{name: tag, number: number}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("no networks can be made: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), "ip", "netns", "add", n.name).CombinedOutput(); err != nil {
		t.Skipf("no networks can be made: ip netns add: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", n.name).CombinedOutput(); err != nil {
			t.Errorf("ip netns del: %v: %s", err, out)
		}
	})
	n.ip(t, "link", "set", "lo", "up")
	n.store, _ = n.way(t, 2*number)
	n.api, n.inner = n.way(t, 2*number+1)
	inode, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", n.name, "readlink", "/proc/self/ns/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	n.id = strings.TrimSpace(string(inode))
	return n
}

// way makes a pair of interfaces, and returns the address of its outer end and
// the name of the inner one. That knows the other's hardware address, so that
// nothing reports that it went away.
func (n *network) way(t *testing.T, number int) (address, inner string) {
	t.Helper()
	outer, inner := fmt.Sprintf("fo%dx%d", os.Getpid(), number), fmt.Sprintf("fi%d", number)
	waysMu.Lock() // until the address is taken
	defer waysMu.Unlock()
	address = freeAddress(t, 16*os.Getpid()+number)
	shell(t, "ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", n.name)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", outer).Run() }) // gone with the namespace, mostly
	shell(t, "ip", "addr", "add", address+"1/24", "dev", outer)
	shell(t, "ip", "link", "set", outer, "up")
	n.ip(t, "addr", "add", address+"2/24", "dev", inner)
	n.ip(t, "link", "set", inner, "up")
	end, err := net.InterfaceByName(outer)
	if err != nil {
		t.Fatal(err)
	}
	n.ip(t, "neigh", "replace", address+"1", "lladdr", end.HardwareAddr.String(), "dev", inner, "nud", "permanent")
	return address + "1", inner
}

var waysMu sync.Mutex

// freeAddress begins addresses that no interface has, those of a run that was killed among
// them: it looks on from a number.
func freeAddress(t *testing.T, number int) string {
	t.Helper()
	taken, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		address := fmt.Sprintf("10.213.%d.", (number+i)%250)
		if !slices.ContainsFunc(taken, func(a net.Addr) bool { return strings.HasPrefix(a.String(), address) }) {
			return address
		}
	}
	t.Fatal("all networks 10.213.0.0/24 to 10.213.249.0/24 are taken")
	return ""
}

// meetingPoint is an address of this machine that networks reach by their way
// to the controller.
func meetingPoint(t *testing.T, all ...*network) string {
	t.Helper()
	address := newPoint(t, 8*os.Getpid()+all[0].number)
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "addr", "del", address+"/32", "dev", "lo").CombinedOutput(); err != nil {
			t.Errorf("ip addr del: %v: %s", err, out)
		}
	})
	for _, n := range all {
		n.ip(t, "route", "add", address+"/32", "via", n.api, "dev", n.inner)
	}
	return address
}

// freePoint is an address of 10.213.255.0/24 that no interface has, that of a run that was killed
// among them: it looks on from a number.
func freePoint(t *testing.T, number int) string {
	t.Helper()
	taken, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		address := fmt.Sprintf("10.213.255.%d", 1+(number+i)%250)
		if !slices.ContainsFunc(taken, func(a net.Addr) bool { return strings.HasPrefix(a.String(), address+"/") }) {
			return address
		}
	}
	t.Fatal("all addresses 10.213.255.1 to 10.213.255.250 are taken")
	return ""
}

// newPoint makes it an address of this machine.
func newPoint(t *testing.T, number int) string {
	t.Helper()
	waysMu.Lock() // until the address is taken
	defer waysMu.Unlock()
	address := freePoint(t, number)
	shell(t, "ip", "addr", "add", address+"/32", "dev", "lo")
	return address
}

func (n *network) ip(t *testing.T, args ...string) {
	t.Helper()
	shell(t, append([]string{"ip", "-n", n.name}, args...)...)
}

func shell(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// cut has packets to and from an outer address vanish, until reconnect.
func (n *network) cut(t *testing.T, address string)       { n.set(t, address, "down") }
func (n *network) reconnect(t *testing.T, address string) { n.set(t, address, "up") }

func (n *network) set(t *testing.T, address, how string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		addresses, _ := each.Addrs()
		if slices.ContainsFunc(addresses, func(a net.Addr) bool { return strings.HasPrefix(a.String(), address+"/") }) {
			shell(t, "ip", "link", "set", each.Name, how)
			return
		}
	}
	t.Fatalf("no interface has the address %s", address)
}

// has reports whether a process is in the network.
func (n *network) has(pid int) bool {
	id, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	return err == nil && id == n.id
}

// program is a fray in the network.
func (n *network) program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fray")
	script := fmt.Sprintf("#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n", n.name, fray)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// everywhere has an emulator serve at all addresses of this machine, too, and
// returns the port.
func everywhere(t *testing.T, e *emulator) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: e}}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// bucketAt points a process at the bucket by an address.
func (p *partition) bucketAt(address string) string {
	return "STORAGE_EMULATOR_HOST=" + net.JoinHostPort(address, p.port)
}
