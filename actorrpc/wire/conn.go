package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/internal/reclaim"
)

// Version of the protocol.
const Version = 1

// Preface is what a client sends before its first frame.
const Preface = "FRAYACT1"

// DefaultMaxMessage is the limit on the payload of a call or a reply in bytes where no other is set.
const DefaultMaxMessage = 1 << 30

// DefaultMemory is how many bytes of payloads a process takes at once where no other limit is set.
const DefaultMemory = 2 << 30

// MaxFrame is the size in bytes up to which a frame is taken, where no lower limit is set. What is larger
// comes in parts.
const MaxFrame = 64 << 20

const (
	prefixSize = 8
	readBuffer = 64 << 10
	// maxBatch is about how many bytes one write takes of what waits.
	maxBatch = 1 << 20
	// maxCopy is up to which size pieces are copied together to be written at once.
	maxCopy = 32 << 10
)

// PostLimit is how many bytes wait to be written before [Conn.Post] waits, too.
const PostLimit = 64 << 20

// MalformedError says that bytes are no frame. The connection cannot go on.
type MalformedError struct{ Problem string }

func (e *MalformedError) Error() string { return "malformed frame: " + e.Problem }

// OversizeError says that a frame is larger than what is taken. With a Frame the
// connection can go on: the frame's buffers were skipped.
type OversizeError struct {
	Size, Limit uint64
	Frame       *Frame // nil if even its head is too large
}

func (e *OversizeError) Error() string {
	return fmt.Sprintf("a message of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// Receipt tells what became of a frame that was handed to Send.
type Receipt struct{ handed atomic.Bool }

// MayHaveArrived reports whether the peer may have the frame. It is certain once
// the connection is closed: false means that it never had all of it.
func (r *Receipt) MayHaveArrived() bool { return r.handed.Load() }

// Conn carries frames over a connection. Send may be called by many goroutines
// at once and Receive by one.
type Conn struct {
	net   net.Conn
	in    *bufio.Reader
	born  time.Time
	heard atomic.Int64 // nanoseconds after born
	limit uint64       // of a frame received, in bytes

	mu      sync.Mutex
	queue   []outgoing
	queued  int // bytes
	flushed sync.Cond
	writing bool
	slowness
	last bool  // the last frame is in the queue, or was
	err  error // of the write that failed

	transfers []*outbound // the next one whose turn it is first
	expected  map[uint64]*inbound
}

type outgoing struct {
	bytes   net.Buffers
	size    int
	receipt *Receipt
}

// NewConn makes frames of a connection; at most limit bytes each are received, and at most [MaxFrame].
func NewConn(c net.Conn, limit uint64) *Conn {
	conn := &Conn{net: c, born: time.Now(), limit: min(limit, MaxFrame)}
	conn.in = bufio.NewReaderSize(listener{conn}, readBuffer)
	conn.flushed.L = &conn.mu
	return conn
}

// listener notes when a read brought something.
type listener struct{ conn *Conn }

func (l listener) Read(p []byte) (int, error) {
	n, err := l.conn.net.Read(p)
	if n > 0 {
		l.conn.heard.Store(int64(time.Since(l.conn.born)))
	}
	return n, err
}

// Heard is when bytes arrived last, also within a frame; before the first, when the
// connection was made.
func (c *Conn) Heard() time.Time { return c.born.Add(time.Duration(c.heard.Load())) }

// Close closes the connection; who sends or receives fails.
func (c *Conn) Close() error { return c.net.Close() }

// RemoteAddr is where the peer is.
func (c *Conn) RemoteAddr() net.Addr { return c.net.RemoteAddr() }

// Send writes a frame and its buffers, which must not change until they are
// written. It returns when they are, or when another goroutine has undertaken to
// write them: frames that were sent meanwhile go out together. The receipt may be nil.
func (c *Conn) Send(f *Frame, buffers [][]byte, receipt *Receipt) error {
	out, err := pack(f, buffers)
	if err != nil {
		return err
	}
	out.receipt = receipt
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enqueue(out, maxBatch); err != nil {
		return err
	}
	return c.writeTurn()
}

// writeTurn writes what waits, unless another goroutine does already. It needs the lock.
func (c *Conn) writeTurn() error {
	if c.writing || c.err != nil || !c.unwritten() {
		return c.err
	}
	c.writing = true
	c.flush()
	c.yield() // what others send does not hold up this caller
	return c.err
}

// enqueue lets a frame wait to be written, once less than limit bytes do. It
// needs the lock.
func (c *Conn) enqueue(out outgoing, limit int) error {
	for c.writing && c.queued > limit && c.err == nil {
		c.flushed.Wait() // who writes is slower than we
	}
	if err := c.over(); err != nil {
		return err
	}
	c.queue = append(c.queue, out)
	c.queued += out.size
	c.handed++
	return nil
}

// over says why nothing can be sent any more, nil while it can. It needs the lock.
func (c *Conn) over() error {
	if c.err == nil && c.last {
		return net.ErrClosed
	}
	return c.err
}

// drain writes until nothing waits.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.unwritten() && c.err == nil {
		c.flush()
	}
	c.rest()
}

// unwritten reports whether something waits to be written. It needs the lock.
func (c *Conn) unwritten() bool { return len(c.queue) > 0 || len(c.transfers) > 0 }

// rest ends the caller's time of writing.
func (c *Conn) rest() {
	c.writing = false
	if c.err != nil {
		c.queue, c.queued, c.transfers = nil, 0, nil
		_ = c.net.Close() // the reader is to know, too
	}
	c.flushed.Broadcast()
}

// flush writes what waits now, and one part of what is sent in parts, with the lock released while it does.
func (c *Conn) flush() {
	batch, frames := c.queue, len(c.queue)
	c.queue, c.queued = nil, 0
	if part, ok := c.nextPart(); ok {
		batch = append(batch, part)
	}
	c.mu.Unlock()
	err := c.write(batch)
	c.mu.Lock()
	c.err = err
	c.wrote(frames)
	c.flushed.Broadcast()
}

func (c *Conn) write(batch []outgoing) error {
	var all net.Buffers
	size := 0
	for _, o := range batch {
		if o.receipt != nil {
			o.receipt.handed.Store(true)
		}
		all = append(all, o.bytes...)
		size += o.size
	}
	n, err := c.writeAll(all, size)
	if err == nil {
		return nil
	}
	for _, o := range batch {
		// A frame that was not written to its end cannot have been read.
		if n -= int64(o.size); n < 0 && o.receipt != nil {
			o.receipt.handed.Store(false)
		}
	}
	return fmt.Errorf("send: %w", err)
}

// writeAll makes one write of what is small: TLS would make a record of each piece.
func (c *Conn) writeAll(all net.Buffers, size int) (int64, error) {
	if len(all) > 1 && size > maxCopy {
		return all.WriteTo(c.net)
	}
	one := all[0]
	if len(all) > 1 {
		one = slices.Concat(all...)
	}
	n, err := c.net.Write(one)
	return int64(n), err
}

func pack(f *Frame, buffers [][]byte) (outgoing, error) {
	head := proto.Size(f)
	body := 0
	for _, b := range buffers {
		body += len(b)
	}
	if head > math.MaxUint32 || body > math.MaxUint32 {
		return outgoing{}, &OversizeError{Size: uint64(head) + uint64(body), Limit: math.MaxUint32}
	}
	bytes := make([]byte, prefixSize, prefixSize+head)
	binary.BigEndian.PutUint32(bytes, uint32(head))
	binary.BigEndian.PutUint32(bytes[4:], uint32(body))
	bytes, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(bytes, f)
	if err != nil {
		return outgoing{}, fmt.Errorf("encode a frame: %w", err)
	}
	return outgoing{bytes: slices.Concat(net.Buffers{bytes}, buffers), size: len(bytes) + body}, nil
}

// Receive reads the next frame and its buffers; with the last part of a payload that is expected all of
// that. Errors are io.EOF where the peer
// closed between frames, *OversizeError, *MalformedError, or the connection's.
func (c *Conn) Receive() (*Frame, [][]byte, error) {
	prefix, err := c.in.Peek(prefixSize)
	if err != nil {
		if len(prefix) > 0 {
			err = cut(err)
		}
		return nil, nil, err
	}
	head, body := binary.BigEndian.Uint32(prefix), binary.BigEndian.Uint32(prefix[4:])
	if _, err := c.in.Discard(prefixSize); err != nil {
		return nil, nil, err
	}
	size := uint64(head) + uint64(body)
	if uint64(head) > c.limit {
		return nil, nil, &OversizeError{Size: size, Limit: c.limit}
	}
	f, err := c.head(int(head))
	if err != nil {
		return nil, nil, err
	}
	if part := f.GetPart(); part != nil {
		payload, err := c.receivePart(part.GetSeq(), int(body))
		return f, payload, err
	}
	if size > c.limit {
		if _, err := io.CopyN(io.Discard, c.in, int64(body)); err != nil {
			return nil, nil, cut(err)
		}
		return nil, nil, &OversizeError{Size: size, Limit: c.limit, Frame: f}
	}
	sizes := bufferSizes(f)
	if err := checkSizes(sizes, uint64(body)); err != nil {
		return nil, nil, err
	}
	if len(sizes) == 0 {
		return f, nil, nil
	}
	reclaim.Before(uint64(body))
	bytes := make([]byte, body)
	if _, err := io.ReadFull(c.in, bytes); err != nil {
		return nil, nil, cut(err)
	}
	buffers := make([][]byte, len(sizes))
	for i, n := range sizes {
		buffers[i], bytes = bytes[:n:n], bytes[n:]
	}
	return f, buffers, nil
}

// head reads a frame's message, from the read buffer where it is there whole.
func (c *Conn) head(size int) (*Frame, error) {
	f := &Frame{}
	if size <= readBuffer {
		bytes, err := c.in.Peek(size)
		if err != nil {
			return nil, cut(err)
		}
		err = proto.Unmarshal(bytes, f)
		if _, discardErr := c.in.Discard(size); discardErr != nil {
			return nil, cut(discardErr)
		}
		return f, malformed(err)
	}
	reclaim.Before(uint64(size))
	bytes := make([]byte, size)
	if _, err := io.ReadFull(c.in, bytes); err != nil {
		return nil, cut(err)
	}
	return f, UnmarshalLarge(bytes, f, c.limit/2)
}

func malformed(err error) error {
	if err == nil {
		return nil
	}
	return &MalformedError{Problem: "its head is no Frame message"}
}

// cut makes the end of a connection within a frame an error.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// bufferSizes are those that a frame says follow it.
func bufferSizes(f *Frame) []uint64 {
	switch kind := f.GetKind().(type) {
	case *Frame_Call:
		if kind.Call.GetTransferBytes() == 0 {
			return kind.Call.GetBufferSizes()
		}
	case *Frame_Reply:
		if kind.Reply.GetTransferBytes() == 0 {
			return kind.Reply.GetBufferSizes()
		}
	case *Frame_Items:
		return kind.Items.GetBufferSizes()
	default:
	}
	return nil
}

func checkSizes(sizes []uint64, body uint64) error {
	left := body
	for _, n := range sizes {
		if n > left {
			return &MalformedError{Problem: fmt.Sprintf("its buffers are said to be more than the %d bytes of its body", body)}
		}
		left -= n
	}
	if left > 0 {
		return &MalformedError{Problem: fmt.Sprintf("%d of the %d bytes of its body belong to no buffer", left, body)}
	}
	return nil
}
