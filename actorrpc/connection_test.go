package actorrpc

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// A silent server is asked for a word after 10 s and given up after 20 s more; then
// its calls are sent again, if it is the same process that answers.
func TestKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		client := w.client(resolverAt(t, w, home), Config{})
		h := mustLookup(t, client, "counter")
		mustAdd(t, h, 1)
		time.Sleep(4*time.Minute + 3*time.Second) // it answers pings
		if w.dials != 1 {
			t.Fatalf("%d connections, want 1: the server answers pings", w.dials)
		}
		mustAdd(t, h, 2)
		w.mu.Lock()
		p.mute = true
		w.mu.Unlock()
		f := Go[int](t.Context(), h, "add", 3)
		began := time.Now()
		time.Sleep(29 * time.Second)
		if w.dials != 1 {
			t.Errorf("after 29 s: %d connections, want 1", w.dials)
		}
		w.mu.Lock()
		p.mute = false
		w.mu.Unlock()
		if got, err := f.Result(t.Context()); err != nil || got != 3 {
			t.Errorf("got %d, %v; want 3", got, err)
		}
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the silence was noticed after %s, want 30 s", took)
		}
		if got := len(w.ran()); got != 3 || w.dials != 2 {
			t.Errorf("%d calls ran over %d connections, want 3 over 2", got, w.dials)
		}
	})
}

// A connection that no call uses is closed, and opened again when it is needed.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		client := w.client(resolverAt(t, w, home), Config{})
		h := mustLookup(t, client, "counter")
		mustAdd(t, h, 1)
		time.Sleep(20 * time.Minute)
		if client.transports.peers[home].connection() != nil {
			t.Error("the connection is open after 20 min without a call")
		}
		mustAdd(t, h, 2)
		if last := p.calls[len(p.calls)-1]; last.GetSeq() != 2 || w.dials != 2 {
			t.Errorf("the next call has seq %d over connection %d, want 2 over 2", last.GetSeq(), w.dials)
		}
	})
}

// While no server answers, attempts come at growing intervals.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home)
		r := resolverAt(t, w, home)
		client := w.client(r, Config{})
		w.kill(home)
		if _, err := Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 1); rpcerror.CodeOf(err) != rpcerror.CodeUnavailable {
			t.Errorf("error is %v, want that no server answers", err)
		}
		// 60 s at 250 to 500 ms each, after some shorter ones.
		if w.dials < 120 || w.dials > 260 {
			t.Errorf("%d attempts in a minute, want 120 to 260", w.dials)
		}
	})
}

// A call whose frame is cut each time, by what is between, is not sent without end;
// those behind it are.
func TestWhatBreaksEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		cuts := 0
		var cut func()
		cut = func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if cuts++; cuts <= maxSends {
				p.breaks = map[int]*broken{1: {inFrame, cut}}
			}
		}
		p.breaks = map[int]*broken{1: {inFrame, cut}}
		h := mustLookup(t, w.client(resolverAt(t, w, home), Config{}), "counter")
		first := Go[int](t.Context(), h, "add", 1)
		second := Go[int](t.Context(), h, "add", 2)
		if _, err := first.Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeUnavailable || ran(err) || !strings.Contains(err.Error(), "17 connections broke") {
			t.Errorf("got %v, want that it was never sent as a whole", err)
		}
		if got, err := second.Result(t.Context()); err != nil || got != 2 {
			t.Errorf("the call behind it returned %d, %v", got, err)
		}
		if got := w.ran(); !slices.Equal(got, []int{2}) {
			t.Errorf("ran %v, want the second only", got)
		}
	})
}

// A server that closes the connection answers what it has; the rest goes elsewhere at once, and ran nowhere.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		p.mute = true
		w.start(other)
		r := resolverAt(t, w, home)
		client := w.client(r, Config{})
		h := mustLookup(t, client, "counter")
		first := Go[int](t.Context(), h, "add", 1)
		second := Go[int](t.Context(), h, "add", 2)
		synctest.Wait()
		w.mu.Lock()
		w.executed = w.executed[:1] // the second was not begun
		w.mu.Unlock()
		p.release(1)
		last := &wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: rejectionOf(rpcerror.CodeStopping)}}}
		if err := writeFrame(p.conns[0], last); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it was read
		third := Go[int](t.Context(), h, "add", 3)
		synctest.Wait()
		r.Set("counter", resolver.Endpoint{Address: other})
		w.kill(home)
		for n, f := range []*Future[int]{first, second, third} {
			if got, err := f.Result(t.Context()); err != nil || got != n+1 {
				t.Errorf("call %d returned %d, %v", n+1, got, err)
			}
		}
		if got := len(p.calls); got != 2 {
			t.Errorf("the server that stops got %d calls, want 2", got)
		}
	})
}

// What servers say in their Handshake may end it at once, with an error that says what to do.
func TestGreetings(t *testing.T) {
	tests := []struct {
		name  string
		hello *wire.Handshake
		raw   string
		code  rpcerror.Code
		want  string
	}{
		{"newer", &wire.Handshake{Version: 2, Peer: "p"}, "", rpcerror.CodeVersion,
			"the server speaks version 2 of the actor protocol, this program version 1: update this program"},
		{"older", &wire.Handshake{Peer: "p"}, "", rpcerror.CodeVersion, "version 0 of the actor protocol, this program version 1: update the server"},
		{"nameless", &wire.Handshake{Version: 1}, "", rpcerror.CodeMalformed, "does not speak the actor protocol"},
		{"another namespace", &wire.Handshake{Version: 1, Peer: "p", Namespace: "vision"}, "", rpcerror.CodeDenied, "peers of another namespace"},
		{"HTTP", nil, "HTTP/1.1 400 Bad Request\r\n\r\n", rpcerror.CodeMalformed, "does not speak the actor protocol"},
		{"garbage", nil, "\x00\x00\x00\x02\x00\x00\x00\x00\xff\xff", rpcerror.CodeMalformed, "does not speak the actor protocol"},
		{"a call", nil, string(packed(t, &wire.Frame{Kind: &wire.Frame_Call{Call: &wire.Call{}}})), rpcerror.CodeMalformed, "does not speak"},
		{"refused", nil, string(packed(t, &wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: (&rpcerror.Error{Code: rpcerror.CodeDenied, Message: "no"}).Wire()}}})),
			rpcerror.CodeDenied, "no"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.start(home)
				p.hello = test.hello
				if test.hello == nil {
					p.raw = func(c net.Conn) {
						go func() { _, _ = c.Write([]byte(test.raw)) }()
						_, _ = io.Copy(io.Discard, c)
					}
				}
				client := w.client(resolverAt(t, w, home), Config{Namespace: "rl"})
				began := time.Now()
				_, err := Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 1)
				if rpcerror.CodeOf(err) != test.code || ran(err) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error is %v, want one of %s that has %q", err, test.code, test.want)
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("it was tried for %s; it will never do", took)
				}
			})
		})
	}
}

func packed(t *testing.T, f *wire.Frame) []byte {
	t.Helper()
	data, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(data))), 0), data...)
}

// A server of one namespace that has two addresses counts the calls of each by themselves.
func TestTwoAddressesOfOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(home)
		w.processes[other] = p
		client := w.client(resolverAt(t, w, home), Config{})
		mustAdd(t, mustLookup(t, client, "counter"), 1)
		h, err := client.Handle(codec.ActorRef{Name: "counter", URL: "actor://" + other + "/counter"})
		if err != nil {
			t.Fatal(err)
		}
		mustAdd(t, h, 2)
		mustAdd(t, mustLookup(t, client, "counter"), 3)
		mustAdd(t, h, 4)
		if len(p.ledgers) != 2 {
			t.Errorf("the process knows %d callers, want 2", len(p.ledgers))
		}
	})
}

// Sizes are checked before anything is sent, against both sides' limits.
func TestTooLarge(t *testing.T) {
	for _, test := range []struct {
		name        string
		mine, yours uint64
		want        string
	}{
		{"mine", 1 << 20, 0, "the arguments are 1.1 MiB; at most 1 MiB are taken (max_message_bytes)"},
		{"the server's", 0, 1 << 20, "the arguments are 1.1 MiB; at most 1 MiB are taken (max_message_bytes)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.start(home)
				p.hello.MaxMessageBytes = test.yours
				client := w.client(resolverAt(t, w, home), Config{MaxMessageBytes: test.mine})
				h := mustLookup(t, client, "counter")
				_, err := Call[int](t.Context(), h, "add", make([]byte, 1<<20))
				if rpcerror.CodeOf(err) != rpcerror.CodeTooLarge || ran(err) || !strings.Contains(err.Error(), "counter.add: "+test.want) {
					t.Errorf("error is %v, want %q", err, test.want)
				}
				mustAdd(t, h, 1)
				if len(p.calls) != 1 {
					t.Errorf("%d calls arrived, want the small one only", len(p.calls))
				}
			})
		})
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1025: "1.1 KiB", 64 << 20: "64 MiB", 64<<20 + 1: "64.1 MiB", 64<<20 - 1: "64.0 MiB", 3 << 30: "3 GiB",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
