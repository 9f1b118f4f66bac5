package host

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// stacks are the goroutines that run code of this package or of gRPC's server.
func stacks() string {
	all := make([]byte, 8<<20)
	var found []string
	for g := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(g, "actorrpc") && !strings.Contains(g, "host.stacks") && !strings.Contains(g, "host.TestMain") || strings.Contains(g, "grpc.(*Server)") {
			found = append(found, g)
		}
	}
	return strings.Join(found, "\n\n")
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("only Linux tells how many descriptors are open")
	}
	return len(entries)
}

func TestNothingIsLeft(t *testing.T) {
	runtime.GC()
	before := descriptors(t)
	for range 3 {
		l := newLesson()
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Register("counter", l, Options{MaxConcurrency: 8}); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var open []net.Conn
		for i := range 20 {
			c := connect(t, s, string(rune('a'+i)))
			c.begin("counter", "wait", "x")
			c.begin("counter", "leave", "exit")
			open = append(open, c.net, dialRaw(t, s)) // one that says nothing
		}
		conn := generalClient(t, s, insecure.NewCredentials())
		if _, err := wire.NewActorsClient(conn).ListActors(t.Context(), &wire.ListActorsRequest{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range open[:20] {
			c.Close()
		}
		close(l.gate)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		for _, c := range open {
			c.Close()
		}
		conn.Close()
	}
	allEnded(t)
	until(t, "all descriptors are closed", func() bool { return descriptors(t) <= before })
}

func allEnded(t *testing.T) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(stacks())
		}
	}()
	until(t, "all goroutines end", func() bool { return stacks() == "" })
}

// A server that cannot start leaves nothing either.
func TestNothingIsLeftOfAStartThatFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := New(Config{Port: taken.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	allEnded(t)
}

// FuzzServer sends bytes to a server that is alive, after the preface and a Handshake
// or instead of them. It has to go on serving others.
func FuzzServer(f *testing.F) {
	l := newLesson()
	close(l.gate)
	s := started(f, Config{MaxMessageBytes: 1 << 20}, map[string]any{"counter": l}, Options{})
	good := connect(f, s, "good")
	in, buffers := request(f, "counter", "echo", make([]byte, 10_000))
	in.Seq = 1
	greeting := bytesOf(f, &wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello("fuzz")}})
	for _, seed := range [][]byte{
		{}, []byte("GET / HTTP/1.1\r\n\r\n"), []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), greeting,
		bytesOf(f, callFrame(in), buffers...),
		bytesOf(f, &wire.Frame{Kind: &wire.Frame_Cancel{Cancel: &wire.Cancel{Seq: 1}}}),
		bytesOf(f, &wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Acked: 1 << 63}}}),
		bytesOf(f, &wire.Frame{Kind: &wire.Frame_ListMethods{ListMethods: &wire.ListMethodsRequest{Actor: "counter"}}}),
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, bytes []byte, handshaken bool) {
		c := dialRaw(t, s)
		if handshaken {
			bytes = append(append([]byte(wire.Preface), greeting...), bytes...)
		}
		_, _ = c.Write(bytes)
		c.Close()
		good.t = t
		if err := good.net.SetDeadline(time.Now().Add(patience)); err != nil { // fuzzing lasts for longer
			t.Fatal(err)
		}
		good.wants("x", "counter", "wait", "x")
		next(t, l.began)
		for len(l.began) > 0 {
			<-l.began
		}
		good.ack = good.seq
	})
}

// FuzzCall sends calls whose every field is made up.
func FuzzCall(f *testing.F) {
	l := newLesson()
	close(l.gate)
	s := started(f, Config{MaxMessageBytes: 1 << 20}, map[string]any{"counter": l}, Options{MaxConcurrency: 4})
	in, _ := request(f, "counter", "increment", 1)
	f.Add("counter", "increment", uint64(1), uint64(0), int32(1), in.GetArgs(), []byte(nil), uint64(0))
	f.Add("counter", "echo", uint64(1), uint64(9), int32(2), []byte(`[["x"],{}]`), []byte("xyz"), uint64(1))
	f.Add("", "_x", uint64(1<<63), uint64(1<<63), int32(-5), []byte{0xc1}, []byte{1}, uint64(1<<63))
	seed := rand.Uint64()
	f.Fuzz(func(t *testing.T, actor, method string, seq, acked uint64, codec int32, args, buffer []byte, timeout uint64) {
		if method == "leave" || method == "Leave" {
			return
		}
		seed++
		c := connect(t, s, string(rune('a'+seed%26)))
		call := &wire.Call{
			Actor: actor, Method: method, Seq: seq, Acked: acked, Codec: wire.Codec(codec), Args: args, TimeoutNs: timeout,
			BufferSizes: []uint64{uint64(len(buffer))},
		}
		if c.conn.Send(callFrame(call), [][]byte{buffer}, nil) != nil {
			return // a name that is no UTF-8 is not sent
		}
		if r := c.receive(); r.GetReply().GetSeq() != seq {
			t.Errorf("got %v, want a reply to %d", r, seq)
		}
		c.net.Close()
		for len(l.began) > 0 {
			<-l.began
		}
	})
}
