package across

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// framed is a frame as it is sent, with a body of its own.
func framed(t *testing.T, f *wire.Frame, body []byte) []byte {
	t.Helper()
	head, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	return append(append(out, head...), body...)
}

// received is the next frame on a connection, without its body.
func received(c io.Reader) (*wire.Frame, error) {
	var prefix [8]byte
	if _, err := io.ReadFull(c, prefix[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.BigEndian.Uint32(prefix[:4])+binary.BigEndian.Uint32(prefix[4:]))
	if _, err := io.ReadFull(c, data); err != nil {
		return nil, err
	}
	f := &wire.Frame{}
	return f, proto.Unmarshal(data[:binary.BigEndian.Uint32(prefix[:4])], f)
}

// hostile is a server that shakes hands and then answers each call as it likes.
func hostile(t *testing.T, hello *wire.Handshake, answer func(call *wire.Call) []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	greeting := framed(t, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello}}, nil)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	serve := func(c net.Conn) {
		defer c.Close()
		if _, err := io.CopyN(io.Discard, c, int64(len(wire.Preface))); err != nil {
			return
		}
		if _, err := received(c); err != nil {
			return
		}
		if _, err := c.Write(greeting); err != nil {
			return
		}
		for {
			f, err := received(c)
			if err != nil {
				return
			}
			if call := f.GetCall(); call != nil {
				_, _ = c.Write(answer(call))
			}
		}
	}
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// A hostile server cannot run code in a client, hang it or make it fail in any way
// but by an error of the call; and it says the same in both languages.
func TestHostileServers(t *testing.T) {
	replies := func(change func(r *wire.Reply)) func(call *wire.Call) []byte {
		return func(call *wire.Call) []byte {
			r := &wire.Reply{Seq: call.GetSeq()}
			change(r)
			return framed(t, &wire.Frame{Kind: &wire.Frame_Reply{Reply: r}}, nil)
		}
	}
	raw := func(data []byte) func(*wire.Call) []byte { return func(*wire.Call) []byte { return data } }
	raised := func(e *wire.Error) func(call *wire.Call) []byte {
		e.Code, e.Ran = wire.Code_CODE_APPLICATION, true
		return replies(func(r *wire.Reply) { r.Error = e })
	}
	deep := bytes.Repeat([]byte{0x91}, 100_000)
	tests := []struct {
		name   string
		hello  *wire.Handshake
		answer func(*wire.Call) []byte
		code   rpcerror.Code
		want   string
	}{
		{"pickle that would run code", nil, replies(func(r *wire.Reply) {
			r.Codec, r.Result = wire.Codec_CODEC_PICKLE, []byte("cos\nabort\n(tR.")
		}), rpcerror.CodeDenied, "pickle is refused"},
		{"an unknown codec", nil, replies(func(r *wire.Reply) { r.Codec, r.Result = 77, []byte("x") }), rpcerror.CodeEncoding, "codec 77"},
		{"deep lists", nil, replies(func(r *wire.Reply) { r.Result = append(deep, 0xc0) }), rpcerror.CodeEncoding, "deep"},
		{"deep JSON", nil, replies(func(r *wire.Reply) {
			r.Codec, r.Result = wire.Codec_CODEC_JSON, []byte(strings.Repeat("[", 100_000))
		}), rpcerror.CodeEncoding, ""},
		{"a list that is said to be huge", nil, replies(func(r *wire.Reply) { r.Result = []byte{0xdd, 0xff, 0xff, 0xff, 0xff} }), rpcerror.CodeEncoding, ""},
		{"bytes that are said to be huge", nil, replies(func(r *wire.Reply) { r.Result = []byte{0xc6, 0xff, 0xff, 0xff, 0xff} }), rpcerror.CodeEncoding, ""},
		{"a buffer that is not there", nil, replies(func(r *wire.Reply) { r.Result = []byte{0xd4, 3, 0x7f} }), rpcerror.CodeEncoding, ""},
		{"a reference to nowhere", nil, replies(func(r *wire.Reply) {
			r.Codec, r.Result = wire.Codec_CODEC_JSON, []byte(`{"$actor":{"name":"x","namespace":"","url":"file:///etc/passwd"}}`)
		}), "", ""},
		{"an exception with the name of a class", nil, raised(&wire.Error{Message: "os.system", Type: "os.system", Traceback: "x", Cause: &wire.Error{Type: "builtins.eval"}}),
			rpcerror.CodeApplication, "os.system"},
		{"an unknown code", nil, replies(func(r *wire.Reply) { r.Error = &wire.Error{Code: 999, Message: "odd", Ran: true} }), rpcerror.CodeInternal, "odd"},
		{"no frame", nil, raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), rpcerror.CodeMaybeExecuted, ""},
		{"a huge head", nil, raw([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}), rpcerror.CodeMaybeExecuted, ""},
		{"buffers without bytes", nil, replies(func(r *wire.Reply) { r.BufferSizes = []uint64{1 << 40} }), rpcerror.CodeMaybeExecuted, ""},
		{"another call's reply", nil, replies(func(r *wire.Reply) { r.Seq += 7 }), rpcerror.CodeMaybeExecuted, ""},
		{"a newer version", &wire.Handshake{Version: 2, Peer: "p"}, nil, rpcerror.CodeVersion,
			"the server speaks version 2 of the actor protocol, this program version 1: update this program"},
		{"an older version", &wire.Handshake{Peer: "p"}, nil, rpcerror.CodeVersion,
			"the server speaks version 0 of the actor protocol, this program version 1: update the server"},
		{"no name", &wire.Handshake{Version: 1}, nil, rpcerror.CodeMalformed, "does not speak the actor protocol"},
	}
	for _, calling := range languages() {
		t.Run("from "+string(calling), func(t *testing.T) {
			c := newCaller(t, calling)
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) {
					hello := test.hello
					if hello == nil {
						hello = &wire.Handshake{Version: 1, Peer: "hostile"}
					}
					a := c.do(t, order{Do: "call", Address: hostile(t, hello, test.answer), Method: "add", Args: "[[1],{}]", Timeout: 3, Resolve: 1})
					if test.code == "" && a.Error == nil { // a handle is made, of nothing
						return
					}
					code := test.code
					if code == "" {
						code = a.Error.Code
					}
					if a.Error != nil && code == rpcerror.CodeMaybeExecuted && a.Error.Code == rpcerror.CodeDeadline && a.Error.Ran {
						code = a.Error.Code // it gave up before the client did
					}
					if a.Error == nil || a.Error.Code != code || !strings.Contains(a.Error.Message, test.want) || a.Error.Actor != "subject" || a.Error.Method != "add" {
						t.Errorf("got %s, want %s of subject.add with %q", clip(a.String()), code, test.want)
					}
				})
			}
		})
	}
}
