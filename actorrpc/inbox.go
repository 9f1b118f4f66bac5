package actorrpc

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// How far a method that streams may be ahead of the loop that takes its items, where the
// options ask for nothing else.
const (
	windowItems = 1000
	windowBytes = 8 << 20
)

// inbox has the items of a stream that have arrived and that no loop has taken. Its lock may
// be taken under any other.
type inbox struct {
	items uint64 // that may be unacknowledged
	bytes int64
	orOne bool // the call takes a result that is no stream as well

	ready chan struct{} // receives when items have arrived
	room  chan struct{} // receives when one was taken

	mu       sync.Mutex // guards the rest
	arrived  []arrival
	received uint64 // how many have arrived
	taken    uint64 // how many the loop took
	acked    uint64 // how many the server was told
	queued   int64  // bytes of arrived
	unacked  int64  // bytes of those that were taken since the last acknowledgement
}

// arrival is one item.
type arrival struct {
	codec   wire.Codec
	result  []byte
	buffers [][]byte
	whole   bool // it is no item but all that the method returned
}

func (a arrival) size() int64 {
	n := len(a.result)
	for _, b := range a.buffers {
		n += len(b)
	}
	return int64(n)
}

func newInbox(o RPCOptions) *inbox {
	return &inbox{
		items: uint64(cmp.Or(max(0, o.StreamWindow), windowItems)), bytes: windowBytes,
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
}

// request is what the call asks for when it is sent, for the first time or again.
func (b *inbox) request() *wire.StreamRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked, b.unacked = b.taken, 0
	return &wire.StreamRequest{
		WindowItems: uint32(min(b.items, 1<<31)), WindowBytes: uint64(b.bytes), Received: b.received, Taken: b.taken, OrOne: b.orOne,
	}
}

// begun reports whether items have arrived.
func (b *inbox) begun() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.received > 0
}

// add takes items that arrived. Some may have arrived before, by another connection.
func (b *inbox) add(f *wire.Items, buffers [][]byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.GetFirst() == 0 || f.GetFirst() > b.received+1 {
		return &wire.MalformedError{Problem: fmt.Sprintf("item %d of a stream of which %d had come", f.GetFirst(), b.received)}
	}
	if last := f.GetFirst() - 1 + uint64(len(f.GetResults())); last > b.acked+b.items || last > b.received && b.queued > 2*b.bytes {
		return &wire.MalformedError{Problem: "more of a stream than its caller takes"}
	}
	for i, result := range f.GetResults() {
		n := 0
		if i < len(f.GetBuffers()) {
			n = int(f.GetBuffers()[i])
		}
		if n > len(buffers) {
			return &wire.MalformedError{Problem: "an item of a stream is said to have buffers that did not come"}
		}
		one := arrival{codec: f.GetCodec(), result: result, buffers: buffers[:n:n]}
		buffers = buffers[n:]
		if f.GetFirst()+uint64(i) <= b.received {
			continue
		}
		b.received++
		b.queued += one.size()
		b.arrived = append(b.arrived, one)
	}
	signal(b.ready)
	return nil
}

// addWaiting is add for a server that does not know how much the caller takes: it waits until there is room.
func (b *inbox) addWaiting(ctx context.Context, f *wire.Items, buffers [][]byte) error {
	for !b.roomy() {
		select {
		case <-b.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.add(f, buffers)
}

func (b *inbox) roomy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked = b.taken
	return b.received-b.taken < b.items && b.queued <= b.bytes
}

// take is the next item, false if none is here. ack is how many the server is to be told
// were taken; 0: it need not be told now.
func (b *inbox) take() (one arrival, ack uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.arrived) == 0 {
		b.arrived = nil
		return arrival{}, 0, false
	}
	one = b.arrived[0]
	b.arrived[0] = arrival{}
	b.arrived = b.arrived[1:]
	size := one.size()
	b.queued -= size
	b.unacked += size
	b.taken++
	if b.taken-b.acked >= max(1, b.items/2) || b.unacked >= b.bytes/2 {
		ack, b.acked, b.unacked = b.taken, b.taken, 0
	}
	signal(b.room)
	return one, ack, true
}

// total is how many items have arrived.
func (b *inbox) total() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.received
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
