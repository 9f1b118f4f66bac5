package actorrpc

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// A server that streams what no stream has, or without end, ends the call; what came before it stays.
func TestHostileStreams(t *testing.T) {
	one := [][]byte{{1}}
	items := func(c net.Conn, all ...*wire.Items) {
		for _, f := range all {
			if writeFrame(c, &wire.Frame{Kind: &wire.Frame_Items{Items: f}}) != nil {
				return
			}
		}
	}
	first := func(call *wire.Call) *wire.Items { return &wire.Items{Seq: call.GetSeq(), First: 1, Results: one} }
	tests := []struct {
		name string
		do   func(c net.Conn, call *wire.Call)
		code rpcerror.Code
	}{
		{"a gap", func(c net.Conn, call *wire.Call) {
			items(c, first(call), &wire.Items{Seq: call.GetSeq(), First: 3, Results: one})
		}, rpcerror.CodeMaybeExecuted},
		{"item 0", func(c net.Conn, call *wire.Call) {
			items(c, first(call), &wire.Items{Seq: call.GetSeq(), Results: one})
		}, rpcerror.CodeMaybeExecuted},
		{"more than is taken", func(c net.Conn, call *wire.Call) {
			items(c, first(call), &wire.Items{Seq: call.GetSeq(), First: 2, Results: make([][]byte, 3000)})
		}, rpcerror.CodeMaybeExecuted},
		{"buffers that did not come", func(c net.Conn, call *wire.Call) {
			items(c, first(call), &wire.Items{Seq: call.GetSeq(), First: 2, Results: one, Buffers: []uint32{7}})
		}, rpcerror.CodeMaybeExecuted},
		{"a call that was not made", func(c net.Conn, call *wire.Call) {
			items(c, first(call), &wire.Items{Seq: 77, First: 1, Results: one})
		}, rpcerror.CodeMaybeExecuted},
		{"an end before its items", func(c net.Conn, call *wire.Call) {
			items(c, first(call))
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{Seq: call.GetSeq(), Streamed: true, Items: 2}}})
		}, rpcerror.CodeMalformed},
		{"no stream", func(c net.Conn, call *wire.Call) {
			items(c, first(call))
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{Seq: call.GetSeq(), Result: []byte{1}}}})
		}, rpcerror.CodeEncoding},
		{"an item of another type", func(c net.Conn, call *wire.Call) {
			items(c, first(call), &wire.Items{Seq: call.GetSeq(), First: 2, Results: [][]byte{[]byte("\xa3one")}})
		}, rpcerror.CodeEncoding},
		{"silence", func(c net.Conn, call *wire.Call) { items(c, first(call)) }, rpcerror.CodeMaybeExecuted},
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
				client := w.client(r, Config{})
				var got []int
				for n, problem := range Stream[int](t.Context(), mustLookup(t, client, "counter"), "count", RPCOptions{Timeout: time.Hour}) {
					if err = problem; err != nil {
						break
					}
					got = append(got, n)
				}
				if len(got) != 1 || rpcerror.CodeOf(err) != test.code {
					t.Errorf("got %v and %v, want [1] and an error of %s", got, err, test.code)
				}
				defer time.Sleep(time.Second) // the server is to notice
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A stream for a call that takes one result ends the connection.
func TestStreamThatWasNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(home).raw = handshaken(func(c net.Conn, call *wire.Call) {
			_ = writeFrame(c, &wire.Frame{Kind: &wire.Frame_Items{Items: &wire.Items{Seq: call.GetSeq(), First: 1}}})
		})
		r, err := resolver.NewFixed(home)
		if err != nil {
			t.Fatal(err)
		}
		client := w.client(r, Config{})
		_, err = Call[int](t.Context(), mustLookup(t, client, "counter"), "add", 1, RPCOptions{Timeout: time.Hour})
		if rpcerror.CodeOf(err) != rpcerror.CodeMaybeExecuted {
			t.Errorf("error is %v, want that it may have run", err)
		}
		defer time.Sleep(time.Second)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}
