package wire

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/reclaim"
)

const (
	// PartsFrom is the size of a payload above which it is sent in parts, to peers that take these.
	PartsFrom = 8 << 20
	// partSize is how large a part is at most: other frames wait as long as one takes.
	partSize = 1 << 20
	// leastPart is how small a part may be that is not the last.
	leastPart = 64 << 10
)

// DecodedLimit is how much memory the values of a message of so many bytes may take, of a receiver
// with such a limit. A message of millions of small values takes many times its size.
func DecodedLimit(limit, size uint64) uint64 {
	const (
		least = 64 << 20
		times = 8
	)
	return min(limit, max(least, times*size))
}

// outbound is a payload that is sent in parts.
type outbound struct {
	seq     uint64
	pieces  [][]byte // what is left
	receipt *Receipt
}

// inbound is a payload that is received in parts.
type inbound struct {
	bytes   []byte
	got     int
	within  time.Duration
	stalled *time.Timer
}

// part takes the next part off the payload.
func (o *outbound) part() (part outgoing, last bool) {
	var pieces [][]byte
	size := 0
	for size < partSize && len(o.pieces) > 0 {
		n := min(partSize-size, len(o.pieces[0]))
		pieces = append(pieces, o.pieces[0][:n])
		size += n
		if o.pieces[0] = o.pieces[0][n:]; len(o.pieces[0]) == 0 {
			o.pieces = o.pieces[1:]
		}
	}
	part, err := pack(&Frame{Kind: &Frame_Part{Part: &Part{Seq: o.seq}}}, pieces)
	if err != nil {
		panic(err) // a part is small, and has no text
	}
	if last = len(o.pieces) == 0; last {
		part.receipt = o.receipt
	}
	return part, last
}

// Transfer sends the payload of an accepted call or reply, in parts between the other frames. Its
// pieces must not change until it is sent. The receipt, which may be nil, is of all of it.
func (c *Conn) Transfer(seq uint64, pieces [][]byte, receipt *Receipt) {
	pieces = slices.DeleteFunc(slices.Clone(pieces), func(p []byte) bool { return len(p) == 0 })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over() != nil || len(pieces) == 0 {
		return
	}
	c.transfers = append(c.transfers, &outbound{seq: seq, pieces: pieces, receipt: receipt})
	c.scheduleFlush()
}

// Cut sends no more parts of a payload, and reports whether some of it was not sent.
func (c *Conn) Cut(seq uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.transfers)
	c.transfers = slices.DeleteFunc(c.transfers, func(o *outbound) bool { return o.seq == seq })
	return len(c.transfers) < before
}

// nextPart is the next part of the transfer whose turn it is. It needs the lock.
func (c *Conn) nextPart() (part outgoing, ok bool) {
	if len(c.transfers) == 0 {
		return outgoing{}, false
	}
	turn := c.transfers[0]
	c.transfers = c.transfers[1:]
	part, last := turn.part()
	if !last {
		c.transfers = append(c.transfers, turn)
	}
	return part, true
}

// Expect takes the payload of a call or reply in parts, whose memory is allocated here. stalled is
// called when no part has come for so long.
func (c *Conn) Expect(seq, size uint64, within time.Duration, stalled func()) {
	reclaim.Before(size)
	in := &inbound{bytes: make([]byte, size), within: within}
	c.mu.Lock()
	defer c.mu.Unlock()
	in.stalled = time.AfterFunc(within, stalled)
	if c.expected == nil {
		c.expected = map[uint64]*inbound{}
	}
	c.expected[seq] = in
}

// Forget drops a payload that has not come as a whole. Parts of it that come are skipped.
func (c *Conn) Forget(seq uint64) { c.forget(seq) }

func (c *Conn) forget(seq uint64) *inbound {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.expected[seq]
	if in != nil {
		in.stalled.Stop()
		delete(c.expected, seq)
	}
	return in
}

func (c *Conn) expects(seq uint64) *inbound {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.expected[seq]
	if in != nil {
		in.stalled.Reset(in.within)
	}
	return in
}

// receivePart reads a part. With the last one the whole payload is returned.
func (c *Conn) receivePart(seq uint64, body int) ([][]byte, error) {
	in := c.expects(seq)
	if in == nil {
		if _, err := io.CopyN(io.Discard, c.in, int64(body)); err != nil {
			return nil, cut(err)
		}
		return nil, nil
	}
	left := len(in.bytes) - in.got
	if body > left || body < min(left, leastPart) {
		return nil, &MalformedError{Problem: fmt.Sprintf("a part of %d bytes, where %d are left of its message", body, left)}
	}
	if _, err := io.ReadFull(c.in, in.bytes[in.got:in.got+body]); err != nil {
		return nil, cut(err)
	}
	if in.got += body; in.got < len(in.bytes) || c.forget(seq) != in {
		return nil, nil
	}
	return [][]byte{in.bytes}, nil
}

// CheckTransfer reports what is wrong with an announced payload of so many bytes, of which the first
// is followed by buffers.
func CheckTransfer(size, first uint64, buffers []uint64) error {
	left := size - min(size, first)
	if first > size {
		return &MalformedError{Problem: "a transfer is smaller than what it carries"}
	}
	return checkSizes(buffers, left)
}

// Split parts a payload into the first piece and the buffers, whose sizes CheckTransfer has accepted.
func Split(payload []byte, first uint64, sizes []uint64) (one []byte, buffers [][]byte) {
	one, payload = payload[:first:first], payload[first:]
	if len(sizes) > 0 {
		buffers = make([][]byte, len(sizes))
	}
	for i, n := range sizes {
		buffers[i], payload = payload[:n:n], payload[n:]
	}
	return one, buffers
}
