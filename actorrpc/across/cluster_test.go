package across

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fray-ml/fray/actorrpc/registrytest"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// inCluster runs a test for each caller and each language of servers, with a register
// of their names.
func inCluster(t *testing.T, run func(t *testing.T, c caller, served language, r *registrytest.Registry)) {
	t.Helper()
	for _, served := range languages() {
		for _, calling := range languages() {
			t.Run(fmt.Sprintf("from %s to %s", calling, served), func(t *testing.T) {
				r, err := registrytest.Start("across")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(r.Stop)
				run(t, newCaller(t, calling, r.Environment("caller/1", 0)...), served, r)
			})
		}
	}
}

// where is where a caller finds an actor.
func where(t *testing.T, c caller, r *registrytest.Registry, name string) string {
	t.Helper()
	a := c.do(t, order{Do: "find", Cluster: r.Address, Namespace: "across", Actor: name})
	if a.Error != nil {
		t.Fatalf("find %s: %s", name, a)
	}
	return a.Value
}

func url(s *server) string { return "actor://" + s.address + "/subject" }

// Fact 22: an endpoint is visible while its task lives, and gone when that ends, is
// tried again or its host dies; an attempt that has ended registers nothing.
func TestEndpoints(t *testing.T) {
	inCluster(t, func(t *testing.T, c caller, served language, r *registrytest.Registry) {
		add := order{Do: "call", Cluster: r.Address, Namespace: "across", Method: "add", Args: "[[3],{}]"}
		nowhere := func(when string) {
			t.Helper()
			expect(t, "it is found nowhere, "+when, func() bool { return where(t, c, r, "subject") == "" })
			soon := add
			soon.Resolve = 0.2
			a := c.do(t, soon).Error
			// A call may be sent before the end of a killed server's connection is heard.
			expect(t, "the connection's end is heard, "+when, func() bool {
				if a == nil || a.Code != rpcerror.CodeMaybeExecuted {
					return true
				}
				a = c.do(t, soon).Error
				return false
			})
			if a == nil || a.Code != rpcerror.CodeUnknownActor || a.Ran {
				t.Errorf("%s: got %+v, want that it is unknown and did not run", when, a)
			}
		}
		nowhere("before it is there")
		first := startServer(t, served, 0, r.Environment("job/1", 0)...)
		expect(t, "it is found", func() bool { return where(t, c, r, "subject") == url(first) })
		if a := c.do(t, add); a.Value != "3" {
			t.Errorf("got %s, want 3", a)
		}
		first.kill()
		r.End("job/1") // as the cluster does that sees the task or its host die
		nowhere("after its task died")
		second := startServer(t, served, 0, r.Environment("job/2", 0)...)
		expect(t, "the next attempt is found", func() bool { return where(t, c, r, "subject") == url(second) })
		if a := c.do(t, add); a.Value != "3" {
			t.Errorf("the next attempt: got %s, want 3", a)
		}
		late := startServer(t, served, 0, r.Environment("job/1", 0)...)
		if !strings.HasPrefix(late.address, rejection) || !strings.Contains(late.address, "has ended") {
			t.Errorf("a server of the attempt that has ended said %q, want that it was refused", late.address)
		}
		if got := where(t, c, r, "subject"); got != url(second) {
			t.Errorf("then it is at %s, want %s", got, url(second))
		}
		second.leave(t)
		nowhere("after its server ended")
	})
}

// Fact 31: many calls that notice one death lead to one connection to the next
// incarnation, and each runs there once.
func TestManyNoticeOneDeath(t *testing.T) {
	const calls = 32
	inCluster(t, func(t *testing.T, c caller, served language, r *registrytest.Registry) {
		call := order{Do: "call", Cluster: r.Address, Namespace: "across", Method: "total", Args: "[[],{}]"}
		first := startServer(t, served, 0, r.Environment("job/1", 0)...)
		if a := c.do(t, call); a.Value != "0" {
			t.Fatalf("got %s, want 0", a)
		}
		for n := range calls {
			wait := call
			wait.Do, wait.ID, wait.Method = "begin", n, "wait"
			c.do(t, wait)
		}
		expect(t, "they are there", func() bool { return pending(t, first.address) == calls })
		first.kill()
		r.End("job/1")
		for n := range calls {
			if got := c.do(t, order{Do: "end", ID: n}).Error; got == nil || got.Code != rpcerror.CodeMaybeExecuted {
				t.Errorf("call %d: got %+v, want that it may have run", n, got)
			}
		}
		for n := range calls { // which all find it gone
			add := call
			add.Do, add.ID, add.Method, add.Args = "begin", calls+n, "add", "[[1],{}]"
			c.do(t, add)
		}
		port := freePort(t)
		w := lead(t, "127.0.0.1:"+strconv.Itoa(port))
		r.Proxied(w.to, w.listener.Addr().String())
		second := startServer(t, served, port, r.Environment("job/2", 0)...)
		for n := range calls {
			if got := c.do(t, order{Do: "end", ID: calls + n}); got.Error != nil {
				t.Errorf("call %d: got %s", calls+n, got)
			}
		}
		w.mu.Lock()
		taken := w.taken
		w.mu.Unlock()
		if got := total(t, &onTheSide{}, second.address); got != calls || taken != 1 {
			t.Errorf("%d calls ran over %d connections, want %d over one", got, taken, calls)
		}
	})
}

// freePort is one that no process has, and that none is given by chance.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := registrytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Fact 33: a group is ready at N of M; waiting for it ends at once when its job has ended.
func TestGroups(t *testing.T) {
	inCluster(t, func(t *testing.T, c caller, served language, r *registrytest.Registry) {
		await := order{Do: "await", Cluster: r.Address, Namespace: "across", Actor: "subject", Job: "pool", Size: 2, Resolve: patience.Seconds()}
		var asked sync.WaitGroup
		var got answer
		asked.Go(func() { got = c.do(t, await) })
		for task := range 2 { // of three
			startServer(t, served, 0, r.Environment("pool/1", task)...)
		}
		asked.Wait()
		if got.Value != "2" {
			t.Errorf("got %s, want the two that are there", got)
		}
		await.Actor, await.Job = "other-subject", "broken"
		asked.Go(func() { got = c.do(t, await) })
		r.EndJob("broken")
		asked.Wait()
		if got.Error == nil || !strings.Contains(got.Error.Message, "job broken has ended") || !strings.Contains(got.Error.Message, "exit 1") {
			t.Errorf("got %s, want that the job has ended, and how", got)
		}
	})
}

// Fact 34: of many, in both languages, that want a name for themselves at the same time
// one gets it, and all callers reach that one.
func TestOneOfARace(t *testing.T) {
	inCluster(t, func(t *testing.T, c caller, served language, r *registrytest.Registry) {
		const racers = 4
		all := make([]*server, racers)
		var begun sync.WaitGroup
		for n := range all {
			l := served
			if n%2 == 1 { // both languages take part, one of them first
				l = languages()[(n/2)%2]
			}
			begun.Go(func() {
				all[n] = startServing(t, l, orders{Unique: "single"}, r.Environment("racer"+strconv.Itoa(n)+"/1", 0)...)
			})
		}
		begun.Wait()
		winners := 0
		for n, s := range all {
			switch {
			case !strings.HasPrefix(s.address, rejection):
				winners++
			case !strings.Contains(s.address, "already"):
				t.Errorf("racer %d in %s said %q, want that the name is taken", n, s.language, s.address)
			}
		}
		if winners != 1 {
			t.Errorf("%d got the name, want one", winners)
		}
		add := order{Do: "call", Cluster: r.Address, Namespace: "across", Actor: "single", Method: "add", Args: "[[1],{}]"}
		for n := range 3 {
			if a := c.do(t, add); a.Value != strconv.Itoa(n+1) {
				t.Errorf("call %d: got %s, want %d: all reach the same one", n, a, n+1)
			}
		}
	})
}
