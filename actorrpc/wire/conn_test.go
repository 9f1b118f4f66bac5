package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// pair is a connection over TCP.
func pair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	for _, c := range []net.Conn{near, far} {
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return near, far
}

func ping(id uint64) *Frame { return &Frame{Kind: &Frame_Ping{Ping: &Ping{Id: id}}} }

func callOf(args int, sizes ...uint64) *Frame {
	return &Frame{Kind: &Frame_Call{Call: &Call{Actor: "a", Args: bytes.Repeat([]byte{7}, args), BufferSizes: sizes}}}
}

func TestFramesArriveAsTheyWereSent(t *testing.T) {
	tests := []struct {
		name    string
		frame   *Frame
		buffers [][]byte
	}{
		{"small", ping(1), nil},
		{"empty", &Frame{}, nil},
		{"a head larger than the read buffer", callOf(3 * readBuffer), nil},
		{"a head of exactly the read buffer", callOf(readBuffer - 12), nil},
		{"buffers", callOf(5, 3, 0, 2), [][]byte{[]byte("abc"), {}, []byte("de")}},
		{"large buffers", callOf(5, 1<<20, 1), [][]byte{bytes.Repeat([]byte{1}, 1<<20), {2}}},
		{"an empty buffer alone", callOf(5, 0), [][]byte{{}}},
		{"buffers of a reply", &Frame{Kind: &Frame_Reply{Reply: &Reply{BufferSizes: []uint64{2}}}}, [][]byte{[]byte("ab")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			near, far := pair(t)
			out, in := NewConn(near, 0), NewConn(far, 1<<22)
			receipt := &Receipt{}
			go func() { // larger than what the system takes at once
				if err := errors.Join(out.Send(test.frame, test.buffers, receipt), out.Send(ping(99), nil, nil)); err != nil {
					t.Error(err)
				}
			}()
			got, buffers, err := in.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, test.frame) || !bytes.Equal(bytes.Join(buffers, nil), bytes.Join(test.buffers, nil)) || len(buffers) != len(test.buffers) {
				t.Errorf("got %d buffers and %v", len(buffers), got)
			}
			if after, _, err := in.Receive(); err != nil || after.GetPing().GetId() != 99 {
				t.Errorf("after it: got %v, %v", after, err)
			}
			if !receipt.MayHaveArrived() {
				t.Error("the receipt says that it cannot have arrived")
			}
		})
	}
}

func TestManySendersAtOnce(t *testing.T) {
	near, far := pair(t)
	out, in := NewConn(near, 0), NewConn(far, 1<<22)
	born := in.Heard()
	const senders, each = 32, 200
	var all sync.WaitGroup
	for n := range senders {
		all.Go(func() {
			for i := range each {
				f, buffer := callOf(1, 5000), bytes.Repeat([]byte{byte(n)}, 5000)
				f.GetCall().Seq, f.GetCall().Acked = uint64(n), uint64(i)
				var err error
				switch i % 3 {
				case 0:
					err = out.Send(f, [][]byte{buffer}, nil)
				case 1:
					err = out.Post(f, [][]byte{buffer})
				default:
					err = errors.Join(out.Queue(f, [][]byte{buffer}, nil), out.Flush())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	next := map[uint64]uint64{}
	for range senders * each {
		f, buffers, err := in.Receive()
		if err != nil {
			t.Fatal(err)
		}
		c := f.GetCall()
		if next[c.GetSeq()] != c.GetAcked() || buffers[0][4999] != byte(c.GetSeq()) {
			t.Fatalf("sender %d: got frame %d, want %d with its own buffer", c.GetSeq(), c.GetAcked(), next[c.GetSeq()])
		}
		next[c.GetSeq()]++
	}
	all.Wait()
	if !in.Heard().After(born) {
		t.Errorf("something was heard last at %s, want after %s", in.Heard(), born)
	}
}

// What was not written to its end cannot have arrived; what was may have.
func TestReceiptsOfAConnectionThatBreaks(t *testing.T) {
	near, far := pair(t)
	out := NewConn(near, 0)
	first := &Receipt{}
	if err := out.Send(ping(1), nil, first); err != nil {
		t.Fatal(err)
	}
	huge, behind := &Receipt{}, &Receipt{}
	sent := make(chan error, 1)
	go func() { sent <- out.Send(callOf(1, 64<<20), [][]byte{make([]byte, 64<<20)}, huge) }()
	for out.isIdle() {
		runtime.Gosched()
	}
	if err := out.Queue(ping(2), nil, behind); err != nil {
		t.Fatal(err)
	}
	far.Close()
	if err := <-sent; err == nil {
		t.Error("got no error of a frame that was not read")
	}
	_ = out.Close()
	out.Settle()
	if !first.MayHaveArrived() || huge.MayHaveArrived() || behind.MayHaveArrived() {
		t.Errorf("got %v, %v, %v; want that only the first may have arrived", first.MayHaveArrived(), huge.MayHaveArrived(), behind.MayHaveArrived())
	}
	if err := out.Send(ping(3), nil, nil); err == nil {
		t.Error("got no error of a connection that is closed")
	}
}

func (c *Conn) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.writing
}

// Post does not wait for a peer that reads nothing.
func TestPostDoesNotWait(t *testing.T) {
	near, far := pair(t)
	out, in := NewConn(near, 0), NewConn(far, 1<<25)
	const frames = 8
	for range frames {
		if err := out.Post(callOf(1, 4<<20), [][]byte{make([]byte, 4<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	for range frames {
		if _, _, err := in.Receive(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFinishIsTheLastFrame(t *testing.T) {
	near, far := pair(t)
	out, in := NewConn(near, 0), NewConn(far, 1<<22)
	if err := out.Post(ping(1), nil); err != nil {
		t.Fatal(err)
	}
	if err := out.Finish(&Frame{Kind: &Frame_Close{Close: &Close{}}}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := out.Post(ping(2), nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v after the last frame", err)
	}
	if f, _, err := in.Receive(); err != nil || f.GetPing().GetId() != 1 {
		t.Errorf("got %v, %v", f, err)
	}
	if f, _, err := in.Receive(); err != nil || f.GetClose() == nil {
		t.Errorf("got %v, %v", f, err)
	}
	if _, _, err := in.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

// raw is a frame's bytes.
func raw(t testing.TB, f *Frame, body []byte) []byte {
	t.Helper()
	head, err := proto.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	return append(append(out, head...), body...)
}

func TestReceiveRefuses(t *testing.T) {
	const limit = 1000
	malformed, oversize := (*MalformedError)(nil), (*OversizeError)(nil)
	tests := []struct {
		name  string
		bytes []byte
		want  string
		as    any
		is    error
	}{
		{"nothing", nil, "EOF", nil, io.EOF},
		{"half a prefix", []byte{0, 0}, "unexpected EOF", nil, io.ErrUnexpectedEOF},
		{"half a head", raw(t, ping(1), nil)[:9], "unexpected EOF", nil, io.ErrUnexpectedEOF},
		{"half a body", raw(t, callOf(1, 4), []byte("abcd"))[:15], "unexpected EOF", nil, io.ErrUnexpectedEOF},
		{"no message", []byte{0, 0, 0, 1, 0, 0, 0, 0, 0xff}, "no Frame message", &malformed, nil},
		{"too few sizes", raw(t, callOf(1, 2), []byte("abc")), "1 of the 3 bytes of its body belong to no buffer", &malformed, nil},
		{"too many sizes", raw(t, callOf(1, 4), []byte("abc")), "more than the 3 bytes", &malformed, nil},
		{"sizes that overflow", raw(t, callOf(1, 1<<63, 1<<63, 3), []byte("abc")), "more than the 3 bytes", &malformed, nil},
		{"a body of a ping", raw(t, ping(1), []byte("abc")), "belong to no buffer", &malformed, nil},
		{"a head over the limit", raw(t, callOf(limit+1), nil), "over the limit of 1000", &oversize, nil},
		{"the longest lengths", []byte("\xff\xff\xff\xff\xff\xff\xff\xff"), "8589934590 bytes", &oversize, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			near, far := pair(t)
			if _, err := near.Write(test.bytes); err != nil {
				t.Fatal(err)
			}
			near.Close()
			_, _, err := NewConn(far, limit).Receive()
			if err == nil || !strings.Contains(err.Error(), test.want) || test.as != nil && !errors.As(err, test.as) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("got %v, want …%s…", err, test.want)
			}
		})
	}
	t.Run("a body over the limit is skipped", func(t *testing.T) {
		near, far := pair(t)
		body := make([]byte, limit)
		if _, err := near.Write(append(raw(t, callOf(1, limit), body), raw(t, ping(7), nil)...)); err != nil {
			t.Fatal(err)
		}
		in := NewConn(far, limit)
		_, _, err := in.Receive()
		if over, ok := errors.AsType[*OversizeError](err); !ok || over.Frame.GetCall().GetActor() != "a" || over.Limit != limit || over.Size <= limit {
			t.Errorf("got %v", err)
		}
		if f, _, err := in.Receive(); err != nil || f.GetPing().GetId() != 7 {
			t.Errorf("got %v, %v, want the frame behind it", f, err)
		}
	})
}

// still is a connection that brings some bytes.
type still struct {
	net.Conn
	io.Reader
}

func (s still) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// FuzzReceive reads any bytes as frames. What is read as a frame is again read the
// same when it is sent.
func FuzzReceive(f *testing.F) {
	for _, seed := range [][]byte{
		nil, raw(f, ping(1), nil), raw(f, callOf(3, 1, 2), []byte("abc")), append(raw(f, ping(1), nil), raw(f, callOf(1), nil)...),
		raw(f, callOf(1, 1<<63), []byte("x")), []byte("\xff\xff\xff\xff\xff\xff\xff\xff"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := NewConn(still{Reader: bytes.NewReader(data)}, 1<<16)
		for range 100 {
			got, buffers, err := in.Receive()
			if over, ok := errors.AsType[*OversizeError](err); ok && over.Frame != nil {
				continue
			}
			if err != nil {
				return
			}
			again, more, err := NewConn(still{Reader: bytes.NewReader(raw(t, got, bytes.Join(buffers, nil)))}, 1<<18).Receive()
			if err != nil || !proto.Equal(got, again) || len(more) != len(buffers) {
				t.Fatalf("got %v, %v, want %v", again, err, got)
			}
		}
	})
}
