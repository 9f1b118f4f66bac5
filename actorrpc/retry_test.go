package actorrpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const (
	home  = "10.0.0.1:7000"
	other = "10.0.0.2:7000"
)

// resolverAt knows where "counter" is.
func resolverAt(t testing.TB, w *world, address string) *resolver.Local {
	t.Helper()
	r, err := resolver.NewLocal(nil)
	if err != nil {
		t.Fatal(err)
	}
	point := func(address string) {
		r.Set("counter", resolver.Endpoint{Address: address, Incarnation: w.processes[address].incarnation})
	}
	point(address)
	return r
}

// aftermath is who answers after a connection broke.
type aftermath string

const (
	sameProcess    aftermath = "the same process"
	anotherProcess aftermath = "another process at the address"
	moved          aftermath = "none, the actor is elsewhere"
	back           aftermath = "none for a while, then another process"
	darkened       aftermath = "silence, the actor is elsewhere"
)

// permission is what lets a call run that may have run already.
type permission string

const (
	none       permission = "no leave"
	idempotent permission = "an idempotent call"
	retries    permission = "retries"
	declared   permission = "a method declared idempotent"
	notSo      permission = "a method declared not so"
)

// Fact 28: a call whose actor died after it may have run is reported as such, never
// silently run twice. Of five calls that were made in a row the third meets a break.
func TestFact28RetryRules(t *testing.T) {
	for _, at := range []point{beforeFrame, inFrame, afterFrame, beforeReply} {
		for _, after := range []aftermath{sameProcess, anotherProcess, moved, back, darkened} {
			for _, leave := range []permission{none, idempotent, retries, declared, notSo} {
				t.Run(fmt.Sprintf("%s, %s, %s", at, after, leave), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { breakThird(t, at, after, leave) })
				})
			}
		}
	}
}

func breakThird(t *testing.T, at point, after aftermath, leave permission) {
	w := newWorld(t)
	first := w.start(home)
	r := resolverAt(t, w, home)
	first.methods = methodsFor(leave)
	late := make(chan *Future[int], 1)
	made := make(chan struct{})
	var h Handle
	first.breaks = map[int]*broken{3: {at, func() {
		<-made
		w.follow(r, after, leave)
		go func() {
			if after == darkened { // where it is now is known, what became of the others is not
				time.Sleep(2 * time.Second)
			}
			late <- Go[int](t.Context(), h, "add", 6) // comes after those that are not settled
		}()
	}}}
	options := RPCOptions{Idempotent: leave == idempotent}
	if leave == retries {
		options.Retries = 1
	}
	client := w.client(r, Config{Options: options})
	var err error
	if h, err = client.Lookup(t.Context(), "counter"); err != nil {
		t.Fatal(err)
	}
	var futures []*Future[int]
	for n := 1; n <= 5; n++ {
		futures = append(futures, Go[int](t.Context(), h, "add", n))
	}
	close(made)
	futures = append(futures, <-late)
	maybe := (at == afterFrame || at == beforeReply) && after != sameProcess
	twice := maybe && leave != none && leave != notSo
	var want []int
	for n, f := range futures {
		got, err := f.Result(t.Context())
		if n+1 == 3 && maybe && !twice {
			if rpcerror.CodeOf(err) != rpcerror.CodeMaybeExecuted || !ran(err) {
				t.Errorf("call 3 returned %d, %v; want an error that it may have run", got, err)
			}
		} else if err != nil || got != n+1 {
			t.Errorf("call %d returned %d, %v", n+1, got, err)
		}
	}
	switch {
	case twice && at == beforeReply:
		want = []int{1, 2, 3, 3, 4, 5, 6}
	case maybe && !twice && at == afterFrame:
		want = []int{1, 2, 4, 5, 6}
	default:
		want = []int{1, 2, 3, 4, 5, 6}
	}
	if got := w.ran(); !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

func methodsFor(leave permission) []*wire.Method {
	return []*wire.Method{{Name: "add", Idempotent: leave == declared}}
}

// follow makes happen what comes after a break.
func (w *world) follow(r *resolver.Local, after aftermath, leave permission) {
	next := func(address string) {
		p := w.start(address)
		p.methods = methodsFor(leave)
		r.Set("counter", resolver.Endpoint{Address: address, Incarnation: p.incarnation})
	}
	switch after {
	case sameProcess:
	case anotherProcess:
		next(home)
	case moved:
		w.kill(home)
		time.Sleep(time.Millisecond) // the connection's end is heard of first
		next(other)
	case back:
		w.kill(home)
		go func() {
			time.Sleep(5 * time.Second)
			next(home)
		}()
	case darkened:
		w.mu.Lock()
		w.processes[home].dark = true
		w.mu.Unlock()
		go func() {
			time.Sleep(time.Second) // it is not noticed at once
			next(other)
		}()
	}
}

// What a server refuses is sent again, in order and within its deadline.
func TestRejections(t *testing.T) {
	for _, code := range []rpcerror.Code{rpcerror.CodeStale, rpcerror.CodeStopping, rpcerror.CodeUnknownActor, rpcerror.CodeBusy} {
		for _, pinned := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, incarnation known: %t", code, pinned), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { refuseThird(t, code, pinned) })
			})
		}
	}
}

func refuseThird(t *testing.T, code rpcerror.Code, pinned bool) {
	w := newWorld(t)
	p := w.start(home)
	second := w.start(other)
	r := resolverAt(t, w, home)
	if !pinned {
		r.Set("counter", resolver.Endpoint{Address: home})
	}
	refused := 0
	var busy time.Time // until when it takes nothing
	p.answer = func(c *wire.Call) *wire.Reply {
		if argument(t, c) < 3 || code == rpcerror.CodeBusy && refused > 0 && !time.Now().Before(busy) {
			return nil
		}
		if refused == 0 {
			busy = time.Now().Add(time.Second)
		}
		if refused++; refused == 1 && code != rpcerror.CodeBusy {
			r.Set("counter", resolver.Endpoint{Address: other, Incarnation: second.incarnation})
		}
		return &wire.Reply{Error: rejectionOf(code)}
	}
	client := w.client(r, Config{})
	h, err := client.Lookup(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	var futures []*Future[int]
	for n := 1; n <= 5; n++ {
		futures = append(futures, Go[int](t.Context(), h, "add", n))
	}
	for n, f := range futures {
		if got, err := f.Result(t.Context()); err != nil || got != n+1 {
			t.Errorf("call %d returned %d, %v", n+1, got, err)
		}
	}
	if got, want := w.ran(), []int{1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

// A rejection that lasts is the call's error once the time is over.
func TestRejectionsThatLast(t *testing.T) {
	tests := []struct {
		code rpcerror.Code
		wait time.Duration // at least
	}{{rpcerror.CodeStale, time.Minute}, {rpcerror.CodeStopping, time.Minute}, {rpcerror.CodeBusy, time.Minute}, {rpcerror.CodeUnknownActor, 0}}
	for _, test := range tests {
		t.Run(string(test.code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(home).answer = func(*wire.Call) *wire.Reply { return &wire.Reply{Error: rejectionOf(test.code)} }
				client := w.client(resolverAt(t, w, home), Config{})
				h, err := client.Lookup(t.Context(), "counter")
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = Call[int](t.Context(), h, "add", 1)
				if rpcerror.CodeOf(err) != test.code || ran(err) || !strings.HasPrefix(err.Error(), "counter.add: ") {
					t.Errorf("error is %v, want one of code %s that names the method and did not run", err, test.code)
				}
				if took := time.Since(began); took < test.wait || took > test.wait+time.Second {
					t.Errorf("it took %s, want %s", took, test.wait)
				}
			})
		})
	}
}
