package host

import "github.com/fray-ml/fray/actorrpc/wire"

// items queues items of a stream. The stream bounds how many there are.
func (c *connection) items(f *wire.Items, buffers [][]byte) {
	_ = c.wire.Queue(&wire.Frame{Kind: &wire.Frame_Items{Items: f}}, buffers, nil) // the reader finds out, too
}

func (c *connection) flush() { _ = c.wire.Flush() }

func (c *connection) left() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// leaveStreams ends the streams that the connection carried, unless their caller comes back.
func (c *connection) leaveStreams() {
	for _, e := range c.server.ledger.streamsOf(c.session, c) {
		c.server.expire(e, c)
	}
}
