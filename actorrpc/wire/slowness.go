package wire

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"
)

// brief is for how long a write is waited for. What the peer's system has room for takes
// microseconds, but on a busy machine the goroutine that writes may have to wait for its turn.
const brief = 5 * time.Millisecond

// slowness is whether a peer reads more slowly than it is written to. The connection's lock guards it.
type slowness struct {
	handed  uint64 // frames that were queued, ever
	written uint64 // of these
	slow    bool   // a write takes longer than brief
	watched bool   // a timer runs
}

// wrote notes that a write of n frames has ended.
func (s *slowness) wrote(n int) {
	s.written += uint64(n)
	s.slow = false
}

// awaitWritten waits until so many frames are written, unless the peer is slow. It needs the lock.
func (c *Conn) awaitWritten(last uint64) {
	for c.written < last && !c.slow && c.err == nil {
		c.watch()
		c.flushed.Wait()
	}
}

// watch notices, after a moment, that nothing was written meanwhile. It needs the lock.
func (c *Conn) watch() {
	if c.watched {
		return
	}
	c.watched = true
	written := c.written
	time.AfterFunc(brief, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watched = false
		c.slow = c.writing && c.written == written
		c.flushed.Broadcast()
	})
}

// writeNow writes what waits as far as the system takes it at once, and leaves the rest to another
// goroutine. It reports false where that cannot be: then nothing was written. It needs the lock.
func (c *Conn) writeNow() bool {
	direct, ok := c.net.(syscall.Conn)
	if c.writing || !ok || c.queued > maxCopy {
		return false
	}
	raw, err := direct.SyscallConn()
	if err != nil {
		return false
	}
	batch := c.queue
	c.queue, c.queued = nil, 0
	c.writing = true
	c.mu.Unlock()
	left := joined(batch)
	n := 0
	problem := raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), left)
		return true
	})
	if problem == nil && err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR) {
		problem = err
	}
	left = left[max(n, 0):]
	c.mu.Lock()
	switch {
	case problem != nil:
		c.err = fmt.Errorf("send: %w", problem)
		c.rest()
	case len(left) > 0:
		go c.finish(left, len(batch))
	default:
		c.wrote(len(batch))
		c.yield()
	}
	return true
}

// finish writes what writeNow has left of so many frames, and what waits.
func (c *Conn) finish(left []byte, frames int) {
	_, err := c.net.Write(left)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = fmt.Errorf("send: %w", err)
	}
	c.wrote(frames)
	c.flushed.Broadcast()
	c.yield()
}

// yield ends the caller's time of writing: it leaves what was queued meanwhile to another goroutine. It needs the lock.
func (c *Conn) yield() {
	if c.unwritten() && c.err == nil {
		go c.drain()
		return
	}
	c.rest()
}

// joined is what frames consist of, which may arrive from now on.
func joined(batch []outgoing) []byte {
	var all net.Buffers
	for _, o := range batch {
		if o.receipt != nil {
			o.receipt.handed.Store(true)
		}
		all = append(all, o.bytes...)
	}
	return slices.Concat(all...)
}
