package wire

import (
	"math"
	"time"
)

// Queue lets a frame wait to be written, by Flush or by the goroutine that is writing. It
// never blocks, so that callers who number their frames can do so and queue them
// under one lock. The receipt may be nil.
func (c *Conn) Queue(f *Frame, buffers [][]byte, receipt *Receipt) error {
	out, err := pack(f, buffers)
	if err != nil {
		return err
	}
	out.receipt = receipt
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enqueue(out, math.MaxInt)
}

// Flush writes what waits. It returns once that is written, or undertaken by
// another goroutine and not too much.
func (c *Conn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing && c.queued > maxBatch && c.err == nil {
		c.flushed.Wait()
	}
	return c.writeTurn()
}

// FlushWithin writes what waits, for so long at most. Close is to follow.
func (c *Conn) FlushWithin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over() != nil || !c.writing && len(c.queue) == 0 || c.net.SetWriteDeadline(time.Now().Add(d)) != nil {
		return
	}
	_ = c.writeTurn()
	for c.writing {
		c.flushed.Wait()
	}
}

// Settle waits until no goroutine writes. After Close that is soon, and then receipts
// are certain.
func (c *Conn) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing {
		c.flushed.Wait()
	}
}

// Post is Send that leaves the writing to another goroutine. It waits only while
// [PostLimit] bytes wait already.
func (c *Conn) Post(f *Frame, buffers [][]byte) error {
	out, err := pack(f, buffers)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enqueue(out, PostLimit); err != nil {
		return err
	}
	c.scheduleFlush()
	return nil
}

// scheduleFlush has another goroutine write what waits. It needs the lock.
func (c *Conn) scheduleFlush() {
	if !c.writing {
		c.writing = true
		go c.drain()
	}
}

// Offer is Post that waits for no slow peer: with [PostLimit] bytes waiting already it reports false, and
// sends nothing. Otherwise the system has the frame when it returns, unless the peer is slow: this
// process may end then. An unhurried caller may be made to write. What goes wrong with the
// connection is found by its reader.
func (c *Conn) Offer(f *Frame, buffers [][]byte, unhurried bool) (taken bool) {
	out, err := pack(f, buffers)
	if err != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing && c.queued > PostLimit && c.err == nil {
		return false
	}
	if c.enqueue(out, math.MaxInt) != nil {
		return true
	}
	last := c.handed
	switch {
	case unhurried:
		_ = c.writeTurn()
	case !c.writeNow():
		c.scheduleFlush()
	}
	c.awaitWritten(last)
	return true
}

// Finish writes a last frame after all that wait, for so long at most, and ends
// the connection for the senders. Close is to follow.
func (c *Conn) Finish(f *Frame, within time.Duration) error {
	out, err := pack(f, nil)
	if err != nil {
		return err
	}
	if err := c.net.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enqueue(out, math.MaxInt); err != nil {
		return err
	}
	c.last, c.transfers = true, nil
	if err := c.writeTurn(); err != nil {
		return err
	}
	for c.writing {
		c.flushed.Wait()
	}
	if c.err != nil {
		return c.err
	}
	if half, ok := c.net.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
