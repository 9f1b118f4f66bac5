package across

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

func total(t *testing.T, c caller, address string) int {
	t.Helper()
	a := c.do(t, order{Do: "call", Address: address, Method: "total", Args: "[[],{}]"})
	n, err := strconv.Atoi(a.Value)
	if err != nil {
		t.Fatalf("the total is %s", a)
	}
	return n
}

// pending is how many calls of "subject" wait or run at a server.
func pending(t *testing.T, address string) int {
	t.Helper()
	names, err := resolver.NewFixed(address)
	if err != nil {
		t.Fatal(err)
	}
	client := actorrpc.NewClient(names, actorrpc.Config{})
	defer func() { _ = client.Close() }()
	e, err := resolver.ParseURL("actor://" + address)
	if err != nil {
		t.Fatal(err)
	}
	actors, err := client.Actors(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range actors {
		if a.GetName() == "subject" {
			return int(a.GetPending())
		}
	}
	t.Fatal("there is no subject")
	return 0
}

// Facts 24, 28 and 30: a call that was under way when its server was killed is
// reported as that, one after the restart finds the new incarnation, whose state is anew.
func TestRestart(t *testing.T) {
	for _, served := range languages() {
		for _, calling := range languages() {
			t.Run(fmt.Sprintf("from %s to %s", calling, served), func(t *testing.T) {
				c, s := newCaller(t, calling), startServer(t, served, freePort(t))
				add := order{Do: "call", Address: s.address, Method: "add", Args: "[[3],{}]", Resolve: patience.Seconds()}
				if a := c.do(t, add); a.Value != "3" {
					t.Fatalf("got %s, want 3", a)
				}
				c.do(t, order{Do: "begin", ID: 1, Address: s.address, Method: "wait", Args: "[[],{}]", Resolve: patience.Seconds()})
				expect(t, "it runs", func() bool { return pending(t, s.address) == 1 })
				s.kill()
				again := startServer(t, served, s.port(t))
				got := c.do(t, order{Do: "end", ID: 1}).Error
				const message = "the connection broke after the call was sent: it may have run"
				if got == nil || got.Code != rpcerror.CodeMaybeExecuted || !got.Ran || got.Message != message || got.Actor != "subject" || got.Method != "wait" {
					t.Errorf("got %+v, want that it may have run", got)
				}
				if a := c.do(t, add); a.Value != "3" {
					t.Errorf("after the restart: got %s, want 3", a)
				}
				again.kill()
				var last *problem
				expect(t, "the caller notices the end", func() bool { // before that it cannot know what became of a call
					last = c.do(t, order{Do: "call", Address: s.address, Method: "add", Args: "[[3],{}]", Resolve: 0.2}).Error
					return last == nil || last.Code != rpcerror.CodeMaybeExecuted
				})
				if last == nil || last.Code != rpcerror.CodeUnavailable || last.Ran {
					t.Errorf("after the end: got %+v, want that it is unavailable and did not run", last)
				}
			})
		}
	}
}

// wires is what connections to a server lead through. It can lose what comes back, and cut.
type wires struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns []net.Conn
	taken int // connections, ever
	mute  bool
}

func lead(t *testing.T, to string) *wires {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wires{listener: l, to: to}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.taken++
			w.mu.Unlock()
			all.Go(func() { w.carry(far, near, false) })
			all.Go(func() { w.carry(near, far, true) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.cut(false)
		all.Wait()
	})
	return w
}

func (w *wires) carry(to, from net.Conn, back bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		lost := back && w.mute
		w.mu.Unlock()
		if err != nil {
			return
		}
		if lost {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut ends all connections. From then on what comes back is lost, or is not.
func (w *wires) cut(mute bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns, w.mute = nil, mute
}

func (w *wires) setMute(mute bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = mute
}

// Fact 28: a call whose reply was lost with the connection is sent again and answered
// with what it returned: it runs once.
func TestLostReply(t *testing.T) {
	pairs(t, func(t *testing.T, c caller, s *server) {
		w := lead(t, s.address)
		through := w.listener.Addr().String()
		before := total(t, c, through)
		w.setMute(true)
		c.do(t, order{Do: "begin", ID: 1, Address: through, Method: "add", Args: "[[1],{}]"})
		expect(t, "it ran", func() bool { return total(t, &onTheSide{}, s.address) == before+1 })
		w.cut(false)
		if a := c.do(t, order{Do: "end", ID: 1}); a.Value != strconv.Itoa(before+1) {
			t.Errorf("got %s, want %d", a, before+1)
		}
		if got := total(t, c, through); got != before+1 {
			t.Errorf("the total is %d, want %d: it ran once", got, before+1)
		}
	})
}

// onTheSide is a caller in Go for one call, with connections of its own.
type onTheSide struct{}

func (*onTheSide) in() language { return golang }

func (*onTheSide) do(t *testing.T, o order) answer {
	t.Helper()
	c := &goCaller{clients: map[order]*actorrpc.Client{}}
	defer c.close()
	return c.do(t, o)
}

// Facts 25 and 28: the calls of one caller run in their order and once, through
// handles created again and connections that are cut.
func TestOrder(t *testing.T) {
	const calls, cuts = 500, 4
	pairs(t, func(t *testing.T, c caller, s *server) {
		w := lead(t, s.address)
		over := make(chan struct{})
		var cutting sync.WaitGroup
		cutting.Go(func() { w.cutOften(cuts, over) })
		before := c.do(t, order{Do: "call", Address: s.address, Method: "seen", Args: "[[],{}]"}).Value
		if a := c.do(t, order{Do: "burst", Address: w.listener.Addr().String(), Method: "note", Size: calls}); a.Error != nil {
			t.Errorf("got %s", a)
		}
		close(over)
		cutting.Wait()
		want := before[:len(before)-1]
		for n := range calls {
			if want != "[" {
				want += ","
			}
			want += strconv.Itoa(n)
		}
		want += "]"
		if got := c.do(t, order{Do: "call", Address: s.address, Method: "seen", Args: "[[],{}]"}).Value; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// cutOften cuts connections so many times, with some bytes between, unless it is over before.
func (w *wires) cutOften(times int, over <-chan struct{}) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for times > 0 {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		some := len(w.conns) > 0
		w.mu.Unlock()
		if some {
			w.cut(false)
			times--
		}
	}
}
