package actorrpc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Whatever happens to connections and processes, a call that returned ran once, one
// that is reported as perhaps executed ran once or not, any other error means that it
// did not, and the calls of a caller ran in order.
func TestChaos(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

const (
	chaosCallers = 6
	chaosCalls   = 40
)

func chaos(t *testing.T, random *rand.Rand) {
	w := newWorld(t)
	w.start(home)
	r := resolverAt(t, w, home)
	client := w.client(r, Config{})
	stop := make(chan struct{})
	seeds := make([]uint64, chaosCallers)
	for i := range seeds {
		seeds[i] = random.Uint64()
	}
	var storm, callers sync.WaitGroup
	storm.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.IntN(40)) * time.Millisecond):
				w.fault(r, random)
			}
		}
	})
	errs := make([]error, chaosCallers*chaosCalls)
	for caller := range chaosCallers {
		pauses := rand.New(rand.NewPCG(seeds[caller], 1))
		callers.Go(func() {
			h := mustLookup(t, client, "counter")
			for i := range chaosCalls {
				n := caller*chaosCalls + i
				time.Sleep(time.Duration(pauses.IntN(5)) * time.Millisecond)
				_, errs[n] = Call[int](t.Context(), h, "add", n)
			}
		})
	}
	callers.Wait()
	close(stop)
	storm.Wait()
	w.check(t, errs)
}

// fault is what may happen to a server.
func (w *world) fault(r *resolver.Local, random *rand.Rand) {
	w.mu.Lock()
	var conns []net.Conn
	for _, p := range w.processes {
		conns = append(conns, p.conns...)
		p.conns = nil
	}
	w.mu.Unlock()
	next := func(address string) {
		p := w.start(address)
		r.Set("counter", resolver.Endpoint{Address: address, Incarnation: p.incarnation})
	}
	switch random.IntN(5) {
	case 0, 1: // connections break
		for _, c := range conns {
			c.Close()
		}
	case 2: // it restarts
		w.kill(home)
		w.kill(other)
		for _, c := range conns {
			c.Close()
		}
		next(home)
	case 3: // it dies, and comes back elsewhere
		w.kill(home)
		w.kill(other)
		for _, c := range conns {
			c.Close()
		}
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		next([]string{home, other}[random.IntN(2)])
	case 4: // the same process has a new incarnation of the actor
		found, err := r.Resolve(context.Background(), "counter")
		if err != nil {
			return
		}
		address := found[0].Address
		w.mu.Lock()
		w.born++
		incarnation := fmt.Sprintf("actor-%d", w.born)
		if p := w.processes[address]; p != nil {
			p.incarnation = incarnation
		}
		w.mu.Unlock()
		r.Set("counter", resolver.Endpoint{Address: address, Incarnation: incarnation})
	}
}

func (w *world) check(t *testing.T, errs []error) {
	t.Helper()
	runs := map[int]int{}
	last := map[int]int{}
	for _, n := range w.ran() {
		runs[n]++
		caller := n / chaosCalls
		if n < last[caller] {
			t.Errorf("call %d ran after call %d", n, last[caller])
		}
		last[caller] = n
	}
	maybe := 0
	for n, err := range errs {
		switch code := rpcerror.CodeOf(err); {
		case err == nil && runs[n] != 1:
			t.Errorf("call %d returned and ran %d times", n, runs[n])
		case code == rpcerror.CodeMaybeExecuted && runs[n] > 1:
			t.Errorf("call %d ran %d times", n, runs[n])
		case code == rpcerror.CodeMaybeExecuted:
			maybe++
		case err != nil:
			t.Errorf("call %d ran %d times: %v", n, runs[n], err)
		}
	}
	if maybe == len(errs) {
		t.Error("no call returned")
	}
}
