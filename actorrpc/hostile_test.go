package actorrpc

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// handshaken speaks as a server until the first call has come, and then as f does.
func handshaken(f func(c net.Conn, call *wire.Call)) func(c net.Conn) {
	return func(c net.Conn) {
		if _, err := readFrame(c, ""); err != nil {
			return
		}
		if writeFrame(c, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: &wire.Handshake{Version: wire.Version, Peer: "hostile"}}}) != nil {
			return
		}
		for {
			in, err := readFrame(c, "")
			if err != nil {
				return
			}
			if call := in.GetCall(); call != nil {
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					_, _ = io.Copy(io.Discard, c)
				}()
				f(c, call)
				<-gone // the connection ends by the client's doing
				return
			}
		}
	}
}

// A hostile server cannot run code in a client, fill its memory or hang it: the call
// ends by its deadline at the latest.
func TestHostileServer(t *testing.T) {
	reply := func(c net.Conn, r *wire.Reply) error {
		return writeFrame(c, &wire.Frame{Kind: &wire.Frame_Reply{Reply: r}})
	}
	tests := []struct {
		name string
		do   func(c net.Conn, call *wire.Call)
		code rpcerror.Code
		want string
	}{
		{"pickle", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Codec: wire.Codec_CODEC_PICKLE, Result: []byte("cos\nsystem\n")})
		}, rpcerror.CodeDenied, "pickle is refused"},
		{"unknown codec", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Codec: 77, Result: []byte("x")})
		}, rpcerror.CodeEncoding, "codec 77"},
		{"no value", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Result: []byte{0xdd, 0xff, 0xff, 0xff, 0xff}})
		}, rpcerror.CodeEncoding, ""},
		{"another type", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Result: []byte("\xa3one")})
		}, rpcerror.CodeEncoding, "result: want int, got string"},
		{"many causes", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Error: causes(2000)})
		}, rpcerror.CodeInternal, "deep"},
		{"causes that take more than the limit", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Error: causes(5000)})
		}, rpcerror.CodeMaybeExecuted, ""},
		{"wrong number", func(c net.Conn, call *wire.Call) { _ = reply(c, &wire.Reply{Seq: call.GetSeq() + 7}) }, rpcerror.CodeMaybeExecuted, ""},
		{"number 0", func(c net.Conn, _ *wire.Call) { _ = reply(c, &wire.Reply{}) }, rpcerror.CodeMaybeExecuted, ""},
		{"garbage", func(c net.Conn, _ *wire.Call) {
			_, _ = c.Write(bytes.Repeat([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0xff}, 100))
		}, rpcerror.CodeMaybeExecuted, ""},
		{"a huge head", func(c net.Conn, _ *wire.Call) { _, _ = c.Write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}) }, rpcerror.CodeMaybeExecuted, ""},
		{"a huge body", func(c net.Conn, call *wire.Call) { hugeBody(c, call) }, rpcerror.CodeTooLarge, "the result is"},
		{"values that take more than the limit", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Result: append([]byte{0xdd, 0, 0, 0xff, 0xff}, bytes.Repeat([]byte{0x80}, 0xffff)...)})
		}, rpcerror.CodeTooLarge, "raise max_message_bytes"},
		{"a list of methods that takes more than the limit", func(c net.Conn, _ *wire.Call) {
			head := append([]byte{0x4a, 0x80, 0x80, 0x08}, bytes.Repeat([]byte{0x0a, 0}, 1<<16)...)
			_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), 0, 0, 0, 0))
			_, _ = c.Write(head)
		}, rpcerror.CodeMaybeExecuted, ""},
		{"buffers that are not there", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), BufferSizes: []uint64{1 << 40}})
		}, rpcerror.CodeMaybeExecuted, ""},
		{"a call", func(c net.Conn, _ *wire.Call) {
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Call{Call: &wire.Call{Seq: 1}}})
		}, rpcerror.CodeMaybeExecuted, ""},
		{"pings without end", func(c net.Conn, _ *wire.Call) {
			for range 1000 {
				time.Sleep(100 * time.Millisecond)
				if writeFrame(c, &wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: 1}}}) != nil {
					return
				}
			}
		}, rpcerror.CodeDeadline, ""},
		{"endless rejections", func(c net.Conn, call *wire.Call) {
			_ = reply(c, &wire.Reply{Seq: call.GetSeq(), Error: rejectionOf(rpcerror.CodeStale)})
		}, rpcerror.CodeStale, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(home).raw = handshaken(test.do)
				r, err := resolver.NewFixed(home)
				if err != nil {
					t.Fatal(err)
				}
				client := w.client(r, Config{MaxMessageBytes: 1 << 20})
				began := time.Now()
				_, err = Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 1, RPCOptions{Timeout: 90 * time.Second})
				if rpcerror.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error is %v, want one of %s that has %q", err, test.code, test.want)
				}
				if took := time.Since(began); took > 2*time.Minute {
					t.Errorf("it took %s", took)
				}
				defer time.Sleep(time.Second) // the server is to notice
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// causes is an error that was made from so many others.
func causes(n int) *wire.Error {
	e := &wire.Error{Code: 99, Message: "deep", Ran: true}
	for range n {
		e = &wire.Error{Code: 99, Message: "deep", Ran: true, Cause: e}
	}
	return e
}

// hugeBody answers with more than is taken; the connection goes on.
func hugeBody(c net.Conn, call *wire.Call) {
	const size = 2 << 20
	frame := packedReply(&wire.Reply{Seq: call.GetSeq(), BufferSizes: []uint64{size}}, size)
	_, _ = c.Write(frame)
	_, _ = c.Write(make([]byte, size))
}

func packedReply(r *wire.Reply, body uint32) []byte {
	var out bytes.Buffer
	_ = writeFrame(discard{&out}, &wire.Frame{Kind: &wire.Frame_Reply{Reply: r}})
	binary.BigEndian.PutUint32(out.Bytes()[4:], body)
	return out.Bytes()
}

// discard is a connection that only keeps what is written.
type discard struct{ *bytes.Buffer }

func (discard) Close() error                     { return nil }
func (discard) LocalAddr() net.Addr              { return nil }
func (discard) RemoteAddr() net.Addr             { return nil }
func (discard) SetDeadline(time.Time) error      { return nil }
func (discard) SetReadDeadline(time.Time) error  { return nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }

// Endless replies to calls that were answered end the connection.
func TestStrayReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ended := make(chan int, 1)
		w.start(home).raw = handshaken(func(c net.Conn, call *wire.Call) {
			for n := 0; ; n++ {
				if writeFrame(c, &wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{Seq: call.GetSeq(), Result: []byte{1}}}}) != nil {
					ended <- n
					return
				}
			}
		})
		client := w.client(resolverAt(t, w, home), Config{})
		mustAdd(t, mustLookup(t, client, "counter"), 1)
		if n := <-ended; n > maxStray+10 {
			t.Errorf("%d replies were taken, want %d", n, maxStray)
		}
	})
}

// A client that is closed leaves nothing behind, whatever its calls were doing.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	synctest.Test(t, func(t *testing.T) { // it ends only when all goroutines have
		w := newWorld(t)
		p := w.start(home)
		p.mute = true
		r := resolverAt(t, w, home)
		r.Set("nowhere", resolver.Endpoint{Address: other})
		client := w.client(r, Config{})
		sent := Go[int](t.Context(), mustLookup(t, client, "counter"), "add", 1)
		waiting := Go[int](t.Context(), mustLookup(t, client, "nowhere"), "add", 2)
		synctest.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if _, err := sent.Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeMaybeExecuted {
			t.Errorf("a call that was sent: error is %v, want that it may have run", err)
		}
		if _, err := waiting.Result(t.Context()); rpcerror.CodeOf(err) != rpcerror.CodeUnavailable || ran(err) {
			t.Errorf("a call that was not: error is %v, want that it did not run", err)
		}
		if _, err := Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 3); rpcerror.CodeOf(err) != rpcerror.CodeUnavailable {
			t.Errorf("a call afterwards: error is %v, want that the client was closed", err)
		}
	})
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched() // the last of the bubble is about to end
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}
