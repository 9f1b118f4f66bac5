package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

func TestHello(t *testing.T) {
	s := started(t, Config{Namespace: "rl", MaxMessageBytes: 1 << 20, MaxPending: 7}, nil, Options{})
	c := connect(t, s, "a")
	if h := c.hello; h.GetVersion() != 1 || h.GetNamespace() != "rl" || h.GetMaxMessageBytes() != 1<<20 || h.GetMaxPending() != 7 ||
		h.GetLanguage() != "go" || h.GetPickle() || h.GetPeer() == "" {
		t.Errorf("got %v", h)
	}
	if again := connect(t, s, "b").hello; again.GetPeer() != c.hello.GetPeer() {
		t.Errorf("got peer %q and %q of one server", again.GetPeer(), c.hello.GetPeer())
	}
	tests := []struct {
		name    string
		change  func(*wire.Handshake)
		code    rpcerror.Code
		message string
	}{
		{"newer", func(h *wire.Handshake) { h.Version = 2 }, rpcerror.CodeVersion,
			"the server speaks version 1 of the actor protocol, this program version 2: update the server"},
		{"older", func(h *wire.Handshake) { h.Version = 0 }, rpcerror.CodeVersion,
			"the server speaks version 1 of the actor protocol, this program version 0: update this program"},
		{"another namespace", func(h *wire.Handshake) { h.Namespace = "web" }, rpcerror.CodeDenied, "peers of another namespace are not served"},
		{"no name", func(h *wire.Handshake) { h.Peer = "" }, rpcerror.CodeMalformed, "Handshake.peer is empty or too long"},
		{"a long name", func(h *wire.Handshake) { h.Peer = strings.Repeat("x", 65) }, rpcerror.CodeMalformed, "Handshake.peer is empty or too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := hello("a")
			test.change(h)
			if err := handshake(t, dialRaw(t, s), h).closeError(); err.Code != test.code || err.Message != test.message {
				t.Errorf("got %s %q\nwant %s %q", err.Code, err.Message, test.code, test.message)
			}
		})
	}
}

// bytesOf is a frame as it is sent.
func bytesOf(t testing.TB, f *wire.Frame, buffers ...[]byte) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer far.Close()
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	if err := wire.NewConn(near, 0).Send(f, buffers, nil); err != nil {
		t.Fatal(err)
	}
	near.Close()
	return <-got
}

func callFrame(in *wire.Call) *wire.Frame { return &wire.Frame{Kind: &wire.Frame_Call{Call: in}} }

func TestWhatIsNoFrameEndsItsConnectionOnly(t *testing.T) {
	l := newLesson()
	s := started(t, Config{MaxMessageBytes: 1 << 20}, map[string]any{"counter": l}, Options{})
	other := connect(t, s, "other")
	in, _ := request(t, "counter", "increment", 1)
	in.Seq = 1
	wrongSizes, _ := request(t, "counter", "increment", 1)
	wrongSizes.BufferSizes = []uint64{1 << 60}
	head := func(head, body uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, head), body)
	}
	tests := []struct {
		name, want string
		code       rpcerror.Code
		bytes      []byte
	}{
		{"garbage", "its head is no Frame message", rpcerror.CodeMalformed, append(head(4, 0), "\xff\xff\xff\xff"...)},
		{"an empty frame", "a kind that a server does not get", rpcerror.CodeMalformed, head(0, 0)},
		{"a second Handshake", "a kind that a server does not get", rpcerror.CodeMalformed, bytesOf(t, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello("a")}})},
		{"a reply", "a kind that a server does not get", rpcerror.CodeMalformed, bytesOf(t, &wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{}}})},
		{"bytes of no buffer", "belong to no buffer", rpcerror.CodeMalformed, bytesOf(t, callFrame(in), []byte("abc"))},
		{"buffers that are not there", "are said to be more", rpcerror.CodeMalformed, bytesOf(t, callFrame(wrongSizes))},
		{"a head that is too large", "at most 1 MiB are taken", rpcerror.CodeTooLarge, head(1<<31, 0)},
		{"HTTP amid frames", "at most 1 MiB are taken", rpcerror.CodeTooLarge, []byte("GET / HTTP/1.1\r\n\r\n")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, s, "a")
			if _, err := c.net.Write(test.bytes); err != nil {
				t.Fatal(err)
			}
			if err := c.closeError(); err.Code != test.code || !strings.Contains(err.Message, test.want) {
				t.Errorf("got %s %q\nwant %s …%s…", err.Code, err.Message, test.code, test.want)
			}
		})
	}
	other.wants(1, "counter", "increment", 1)
}

func TestWhatSpeaksNothingIsLetGo(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	for _, bytes := range []string{"HELO example.com\r\n", "FRAYACT2", "\x00\x00\x00\x00"} {
		c := dialRaw(t, s)
		if _, err := c.Write([]byte(bytes)); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); len(got) > 0 || err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: got %q, %v, want the end", bytes, got, err)
		}
	}
}

func TestThePrefaceMayComeInPieces(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	raw := dialRaw(t, s)
	in, _ := request(t, "counter", "increment", 1)
	in.Seq = 1
	all := slices.Concat([]byte(wire.Preface), bytesOf(t, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello("a")}}), bytesOf(t, callFrame(in)))
	for _, b := range all {
		if _, err := raw.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	c := &client{t: t, net: raw, conn: wire.NewConn(raw, 1<<20), early: map[uint64]answer{}}
	if got, err := c.result(1); err != nil || got != int64(1) {
		t.Errorf("got %v, %v, want 1", got, err)
	}
}

func TestTooLarge(t *testing.T) {
	const limit = 1 << 20
	s := started(t, Config{MaxMessageBytes: limit}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	err := c.fails(rpcerror.CodeTooLarge, "counter", "echo", make([]byte, limit+1))
	if want := "the arguments are 1.1 MiB; at most 1 MiB are taken (max_message_bytes)"; err.Ran || err.Message != want || err.Method != "echo" {
		t.Errorf("got %+v, want %q", err, want)
	}
	c.wants(bytes.Repeat([]byte{1}, 1000), "counter", "echo", bytes.Repeat([]byte{1}, 1000))

	h := hello("b")
	h.MaxMessageBytes = 100_000
	small := handshake(t, dialRaw(t, s), h)
	err = small.fails(rpcerror.CodeTooLarge, "counter", "echo", make([]byte, 100_000))
	if !err.Ran || !strings.HasPrefix(err.Message, "the result is 1000") {
		t.Errorf("got %+v", err)
	}
	small.wants([]byte("x"), "counter", "echo", []byte("x"))
}

func TestBuffersTravelBesideTheMessage(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i * 7)
	}
	r, buffers := c.await(c.begin("counter", "echo", data))
	if len(buffers) != 1 || !bytes.Equal(buffers[0], data) || len(r.GetResult()) > 100 {
		t.Errorf("got %d buffers and a result of %d bytes", len(buffers), len(r.GetResult()))
	}
}

func TestCancel(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	runs := c.begin("counter", "wait", "runs")
	next(t, l.began)
	waits := c.begin("counter", "increment", 1)
	cancel := func(seq uint64) { c.send(&wire.Frame{Kind: &wire.Frame_Cancel{Cancel: &wire.Cancel{Seq: seq}}}) }
	cancel(waits)
	if err := c.failed(rpcerror.CodeCancelled, waits); err.Ran {
		t.Errorf("got %+v, want that it did not run", err)
	}
	cancel(waits) // answered
	cancel(99)    // never begun
	cancel(runs)
	if err := c.failed(rpcerror.CodeCancelled, runs); !err.Ran || err.Message != "the caller cancelled the call" {
		t.Errorf("got %+v, want that it ran", err)
	}
	c.wants(1, "counter", "increment", 1)
}

func TestDeadlines(t *testing.T) {
	l := newLesson()
	s := started(t, Config{}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	timed := func(timeout time.Duration, method string, args ...any) uint64 {
		in, buffers := request(t, "counter", method, args...)
		in.TimeoutNs = uint64(timeout)
		return c.sendCall(in, buffers...)
	}
	if got, err := c.result(timed(time.Hour, "left")); err != nil || got.(float64) > 3600 || got.(float64) < 3000 {
		t.Errorf("got %v seconds left, %v, want an hour", got, err)
	}
	if got, _ := c.call("counter", "left"); got != float64(-1) {
		t.Errorf("got %v seconds left, want no deadline", got)
	}
	if got, err := c.result(timed(1<<63-1, "left")); err != nil || got.(float64) < 1e9 {
		t.Errorf("got %v, %v", got, err)
	}
	if err := c.failed(rpcerror.CodeDeadline, timed(time.Second, "wait", "x")); !err.Ran {
		t.Errorf("got %+v, want that it ran", err)
	}
	next(t, l.began)
	runs := c.begin("counter", "wait", "runs")
	next(t, l.began)
	late := timed(time.Nanosecond, "increment", 1)
	close(l.gate)
	if err := c.failed(rpcerror.CodeDeadline, late); err.Ran {
		t.Errorf("got %+v, want that it did not run", err)
	}
	_, _ = c.result(runs)
	c.wants(1, "counter", "increment", 1)
}

func TestTooManyCallsOfAConnection(t *testing.T) {
	l := newLesson()
	s := started(t, Config{MaxPending: 3}, map[string]any{"counter": l}, Options{})
	c := connect(t, s, "a")
	for range 3 {
		c.begin("counter", "wait", "x")
	}
	busy := c.begin("counter", "increment", 1)
	if err := c.failed(rpcerror.CodeBusy, busy); err.Ran {
		t.Errorf("got %+v", err)
	}
	other := connect(t, s, "b")
	theirs := other.begin("counter", "increment", 1)
	close(l.gate)
	for n := range 3 {
		_, _ = c.result(uint64(n + 1))
	}
	if _, err := other.result(theirs); err != nil {
		t.Errorf("another connection: %v", err)
	}
	c.wants(2, "counter", "increment", 1)
}

func TestNamedArguments(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{Methods: map[string]MethodOptions{"increment": {Params: []string{"by"}}}})
	c := connect(t, s, "a")
	named := func(method string, positional []any, args map[string]any) uint64 {
		data, _, err := codec.EncodeArgs(codec.JSON, positional, args)
		if err != nil {
			t.Fatal(err)
		}
		return c.sendCall(&wire.Call{Actor: "counter", Method: method, Args: data, Codec: wire.Codec_CODEC_JSON})
	}
	r, _ := c.await(named("increment", nil, map[string]any{"by": 4}))
	if string(r.GetResult()) != "4" || r.GetCodec() != wire.Codec_CODEC_JSON {
		t.Errorf("got %s in %s, want 4 in JSON", r.GetResult(), r.GetCodec())
	}
	tests := []struct {
		name, method string
		positional   []any
		named        map[string]any
		want         string
	}{
		{"unknown", "increment", nil, map[string]any{"bye": 1}, `unexpected argument "bye"`},
		{"twice", "increment", []any{1}, map[string]any{"by": 1}, `unexpected argument "by"`},
		{"of a method without names", "note", nil, map[string]any{"n": 1}, `unexpected argument "n"`},
	}
	for _, test := range tests {
		if err := c.failed(rpcerror.CodeBadArguments, named(test.method, test.positional, test.named)); err.Message != test.want {
			t.Errorf("%s: got %q, want %q", test.name, err.Message, test.want)
		}
	}
}

func TestPickleIsRefused(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	in, _ := request(t, "counter", "increment", 1)
	in.Codec = wire.Codec_CODEC_PICKLE
	if err := c.failed(rpcerror.CodeDenied, c.sendCall(in)); err.Ran || !strings.HasPrefix(err.Message, "pickle is refused: ") {
		t.Errorf("got %+v", err)
	}
	in, _ = request(t, "counter", "increment", 1)
	in.Codec = 99
	_ = c.failed(rpcerror.CodeEncoding, c.sendCall(in))
}

func TestListings(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson(), "other": newLesson()}, Options{
		Groups:  map[string]int{"io": 4},
		Methods: map[string]MethodOptions{"Sum": {Group: "io"}},
	})
	c := connect(t, s, "a")
	c.send(&wire.Frame{Kind: &wire.Frame_ListMethods{ListMethods: &wire.ListMethodsRequest{Actor: "counter", Id: 5}}})
	m := c.receive().GetMethods()
	var names, signatures []string
	for _, one := range m.GetMethods() {
		names = append(names, one.GetName())
		signatures = append(signatures, one.GetSignature())
	}
	if m.GetId() != 5 || m.GetIncarnation() == "" || !slices.IsSorted(names) || slices.Contains(names, "three") {
		t.Errorf("got %v", m)
	}
	for _, want := range []string{"increment(int) int", "note(int) error", "panic()", "wait(string) (string, error)", "sum(int, ...int) int"} {
		if !slices.Contains(signatures, want) {
			t.Errorf("got %q, want %q among them", signatures, want)
		}
	}
	c.send(&wire.Frame{Kind: &wire.Frame_ListMethods{ListMethods: &wire.ListMethodsRequest{Actor: "count", Id: 6}}})
	if m := c.receive().GetMethods(); m.GetError().GetCode() != wire.Code_CODE_UNKNOWN_ACTOR || m.GetId() != 6 {
		t.Errorf("got %v", m)
	}
	_, _ = c.call("other", "panic")
	c.send(&wire.Frame{Kind: &wire.Frame_ListActors{ListActors: &wire.ListActorsRequest{Prefix: "o", Id: 7}}})
	a := c.receive().GetActors()
	if len(a.GetActors()) != 1 || a.GetId() != 7 || a.GetActors()[0].GetClass() != "*host.lesson" || a.GetActors()[0].GetErrors() != 1 {
		t.Errorf("got %v", a)
	}
}

func TestContextOfAMethod(t *testing.T) {
	s := started(t, Config{Namespace: "rl"}, map[string]any{"counter": newLesson()}, Options{})
	got, err := connect(t, s, "me").call("counter", "who")
	m, ok := got.(map[string]any)
	if err != nil || !ok || m["actor"] != "counter" || m["method"] != "who" || m["caller"] != "me" || m["namespace"] != "rl" || m["incarnation"] == "" {
		t.Errorf("got %v, %v", got, err)
	}
	if c := FromContext(t.Context()); c != (ActorContext{}) {
		t.Errorf("got %+v outside of a call", c)
	}
}

func TestSilentClientsAreLetGo(t *testing.T) {
	s := started(t, Config{Keepalive: 20 * time.Millisecond, Patience: 3 * time.Second}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	if f := c.receive(); f.GetPing() == nil {
		t.Fatalf("got %v, want a Ping", f)
	}
	if f, _, err := c.conn.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v, want the end of the connection", f, err)
	}
	until(t, "the server knows", func() bool { return s.connectionCount() == 0 })
	talks := connect(t, s, "b")
	for range 3 { // longer than the silent one was served
		ping := talks.receive().GetPing()
		talks.send(&wire.Frame{Kind: &wire.Frame_Pong{Pong: &wire.Pong{Id: ping.GetId()}}})
	}
	talks.wants(1, "counter", "increment", 1)
}
