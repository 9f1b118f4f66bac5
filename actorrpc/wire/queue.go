package wire

import (
	"math"
	"time"
)

// Queue lets a frame wait to be written, by Flush or by whoever is writing. It
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

// Settle waits until nobody writes. After Close that is soon, and then receipts
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
	if !c.writing {
		c.writing = true
		go c.drain()
	}
	return nil
}

// Finish writes a last frame after all that wait, for so long at most, and ends
// the connection for those who send. Close is to follow.
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
	c.last = true
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
