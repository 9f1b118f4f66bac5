package host

import (
	"sync"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// late are the calls of a connection whose replies wait in the ledger, as enough others
// wait to be written. The zero value has none.
type late struct {
	mu  sync.Mutex
	seq []uint64
}

// add notes a call, and reports whether it is the only one.
func (l *late) add(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq = append(l.seq, seq)
	return len(l.seq) == 1
}

// first is the call that waits for the longest.
func (l *late) first() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq[0]
}

// next drops the first, and reports whether there are others.
func (l *late) next() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq = l.seq[1:]
	return len(l.seq) > 0
}

// some reports whether there are any.
func (l *late) some() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seq) > 0
}

// later has a reply sent once others have been. Until then it is the ledger's, which has
// only so much room; the call counts as unanswered.
func (c *connection) later(seq uint64) {
	c.server.active.Add(1)
	c.pending.Add(1)
	if c.late.add(seq) {
		go c.catchUp()
	}
}

// catchUp sends the replies that are late, one after the other as fast as the client reads.
func (c *connection) catchUp() {
	for more := true; more; {
		seq := c.late.first()
		reply, buffers := &wire.Reply{Seq: seq, Error: forgotten().Wire()}, [][]byte(nil)
		if a := c.server.ledger.answer(c.session, seq); a != nil {
			reply, buffers = a.reply, a.buffers
		}
		c.pending.Add(-1)
		_ = c.wire.Post(c.frame(reply, buffers)) // the reader finds out, too
		more = c.late.next()
		c.server.leave()
	}
}

func forgotten() *rpcerror.Error {
	return &rpcerror.Error{
		Code: rpcerror.CodeMaybeExecuted, Message: "the call was answered, and its reply forgotten as the caller read too slowly", Ran: true,
	}
}
