package host

import (
	"sync"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// How far a method that streams may be ahead of its caller, where the call asks for nothing
// else, and what a call can ask for at most.
const (
	windowItems, mostWindowItems = 1000, 100_000
	windowBytes, mostWindowBytes = 8 << 20, 64 << 20
)

// How much of a stream goes into one frame.
const (
	batchItems = 1024
	batchBytes = 256 << 10
)

// itemOverhead is about what an item takes beside its bytes.
const itemOverhead = 64

// sink takes the items of a stream to its caller, and the reply after them.
type sink interface {
	answerer
	// items queues items to be sent; it does not wait.
	items(f *wire.Items, buffers [][]byte)
	// flush sends what is queued. It may wait for the caller.
	flush()
	// left reports whether it has ended.
	left() bool
}

// item is one result of a method that streams.
type item struct {
	result  []byte
	buffers [][]byte
}

func (i item) size() int64 {
	n := itemOverhead + len(i.result)
	for _, b := range i.buffers {
		n += len(b)
	}
	return int64(n)
}

// stream has the items of a call that the caller has not acknowledged, so that a connection that
// breaks loses none. The method waits while they are as many as the caller takes.
type stream struct {
	seq         uint64
	codec       wire.Codec
	incarnation string
	items       uint64 // that may be unacknowledged
	bytes       int64

	mu       sync.Mutex // guards the rest; that of the ledger may be held when it is taken
	changed  sync.Cond
	to       sink // nil: there is no connection
	kept     []item
	size     int64  // of kept
	taken    uint64 // how many the caller has acknowledged: kept begins after them
	sent     uint64 // how many were handed to the sink
	announce bool   // the sink is to get a frame, though there are no items
	pumping  bool   // a goroutine sends
	stopped  *rpcerror.Error
	final    *answer // the reply, nil while the method runs
	replied  bool    // the sink has it
}

// newStream is one with the window that a call asks for.
func newStream(in *wire.Call, incarnation string) *stream {
	asked := in.GetStream()
	s := &stream{
		seq: in.GetSeq(), codec: in.GetCodec(), incarnation: incarnation, announce: true,
		items: windowItems, bytes: windowBytes,
	}
	if n := asked.GetWindowItems(); n > 0 {
		s.items = min(uint64(n), mostWindowItems)
	}
	if n := asked.GetWindowBytes(); n > 0 {
		s.bytes = int64(min(n, mostWindowBytes))
	}
	s.changed.L = &s.mu
	return s
}

// put adds an item, and waits until there is room for another. It reports false once no
// more are wanted.
func (s *stream) put(one item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != nil {
		return false
	}
	s.kept = append(s.kept, one)
	s.size += one.size()
	s.pump()
	for s.stopped == nil && (uint64(len(s.kept)) >= s.items || s.size >= s.bytes) {
		s.changed.Wait()
	}
	return s.stopped == nil
}

// pump has a goroutine send what there is, unless one does. It needs the lock.
func (s *stream) pump() {
	if s.pumping || s.to == nil {
		return
	}
	s.pumping = true
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for s.to != nil && s.hand() { // what comes while it is written goes into the next frame
			to := s.to
			s.mu.Unlock()
			to.flush()
			s.mu.Lock()
		}
		s.pumping = false
	}()
}

// hand gives the sink what it has not got, and reports whether that is anything. It needs the lock.
func (s *stream) hand() bool {
	some := s.announce
	for unsent := s.kept[s.sent-s.taken:]; len(unsent) > 0 || s.announce; unsent = s.kept[s.sent-s.taken:] {
		f, buffers := s.frame(unsent)
		s.to.items(f, buffers)
		s.sent += uint64(len(f.GetResults()))
		s.announce, some = false, true
	}
	if s.final != nil && !s.replied {
		s.replied, some = true, true
		s.to.answer(s.final.reply, s.final.buffers, false)
	}
	return some
}

// frame is as many of the items as go into one.
func (s *stream) frame(unsent []item) (*wire.Items, [][]byte) {
	f := &wire.Items{Seq: s.seq, First: s.sent + 1, Codec: s.codec}
	var buffers [][]byte
	size := int64(0)
	for n, one := range unsent {
		if size += one.size(); n == batchItems || n > 0 && size > batchBytes {
			break
		}
		f.Results = append(f.Results, one.result)
		if len(one.buffers) > 0 && len(f.Buffers) == 0 {
			f.Buffers = make([]uint32, n, len(unsent))
		}
		if len(one.buffers) > 0 || len(f.Buffers) > 0 {
			f.Buffers = append(f.Buffers, uint32(len(one.buffers)))
		}
		for _, b := range one.buffers {
			f.BufferSizes = append(f.BufferSizes, uint64(len(b)))
			buffers = append(buffers, b)
		}
	}
	return f, buffers
}

// ack forgets items that the caller has taken.
func (s *stream) ack(taken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(taken)
}

func (s *stream) forget(taken uint64) {
	taken = min(taken, s.sent)
	if taken <= s.taken {
		return
	}
	n := taken - s.taken
	for i := range s.kept[:n] {
		s.size -= s.kept[i].size()
		s.kept[i] = item{}
	}
	s.kept, s.taken = s.kept[n:], taken
	s.changed.Broadcast()
}

// attach has the stream go on over another sink, after the items that its caller has.
func (s *stream) attach(to sink, asked *wire.StreamRequest) {
	received := asked.GetReceived()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == to { // as the method has just begun
		return
	}
	s.to, s.replied = to, false
	s.sent = min(max(received, s.taken), s.taken+uint64(len(s.kept)))
	s.announce = received == 0
	s.pump()
	s.forget(asked.GetTaken())
}

// stop ends the stream: nothing more is taken from the method.
func (s *stream) stop(why *rpcerror.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil {
		s.stopped = why
	}
	s.changed.Broadcast()
}

// stoppedBy is why the stream was stopped, nil while it was not.
func (s *stream) stoppedBy() *rpcerror.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// seal completes the reply that ends the stream, and returns how much memory its items take.
// Those of a stream that its caller gave up are dropped.
func (s *stream) seal(a *answer) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil {
		s.stopped = &rpcerror.Error{Code: rpcerror.CodeCancelled, Message: "the stream has ended", Ran: true}
	}
	a.reply.Streamed, a.reply.Items = true, s.taken+uint64(len(s.kept))
	if code := a.reply.GetError().GetCode(); code == wire.Code_CODE_CANCELLED || code == wire.Code_CODE_MAYBE_EXECUTED {
		s.kept, s.size, s.sent = nil, 0, s.taken
	}
	s.changed.Broadcast()
	return s.size
}

// finish sends the reply after all items.
func (s *stream) finish(a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final = a
	if s.to != nil {
		s.hand()        // before the call counts as answered
		go s.to.flush() // a caller that reads slowly is not to hold up others
	}
}
