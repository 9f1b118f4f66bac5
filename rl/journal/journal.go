package journal

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// ErrReplaced reports that another process writes the journal now.
var ErrReplaced = errors.New("another process has taken the journal over")

// ErrDamaged reports a journal of which a part in the middle cannot be read.
var ErrDamaged = errors.New("the journal is damaged")

// ErrClosed reports a record for a journal that was closed.
var ErrClosed = errors.New("the journal is closed")

// WriteError is that records could not be written: the process that has the journal is to end.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "write the journal: " + e.Err.Error() }

func (e *WriteError) Unwrap() error { return e.Err }

// MaybeExecuted has a host of actors answer that the call may have run, so that its caller asks the next process again
// instead of taking the error for an answer.
func (e *WriteError) MaybeExecuted() bool { return true }

// medium is where chunks are kept.
type medium interface {
	// write appends a chunk; it is durable on return.
	write(ctx context.Context, chunk []byte) error
	// replace has chunks stand for all before them; they are durable on return.
	replace(ctx context.Context, chunks iter.Seq[[]byte]) error
	// floor is the least size, in bytes, that a chunk counts for.
	floor() int64
	close() error
}

// maxChunk is how many bytes of records are written at once, unless one is larger.
const maxChunk = 8 << 20

// Journal is a journal that this process writes. All methods may be called concurrently.
type Journal struct {
	medium medium
	done   chan struct{} // closed once nothing is written any more

	mu      sync.Mutex
	work    *sync.Cond // something is pending, or closing
	written *sync.Cond // durable or err has changed
	pending []entry
	next    uint64 // number of the next entry
	durable uint64 // entries below are
	size    int64  // bytes since the last snapshot, with it
	closing bool
	err     error // once set, nothing is written any more
}

// entry is a record, or a snapshot that replaces all before it.
type entry struct {
	record   []byte
	snapshot [][]byte // nil: a record
}

// Position names a record; Wait waits for it.
type Position uint64

func start(ctx context.Context, m medium, size int64) *Journal {
	j := &Journal{medium: m, done: make(chan struct{}), size: size}
	j.work, j.written = sync.NewCond(&j.mu), sync.NewCond(&j.mu)
	go j.run(ctx)
	return j
}

// Append has a record written behind all before it. It must not be changed any more.
func (j *Journal) Append(record []byte) Position {
	return j.push(entry{record: record}, int64(len(record)))
}

// Rewrite replaces everything before it by the records of a snapshot.
func (j *Journal) Rewrite(records [][]byte) Position {
	var size int64
	for _, record := range records {
		size += int64(len(record))
	}
	if records == nil {
		records = [][]byte{}
	}
	j.mu.Lock()
	j.size = 0
	j.mu.Unlock()
	return j.push(entry{snapshot: records}, size)
}

func (j *Journal) push(e entry, size int64) Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil { // else it would never be written, and memory would grow
		j.pending = append(j.pending, e)
	}
	j.size += size
	j.next++
	j.work.Signal()
	return Position(j.next)
}

// Wait waits until a record and all before it are durable. An error is final: what was appended since may be lost,
// and the process should end.
func (j *Journal) Wait(at Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.durable < uint64(at) && j.err == nil {
		j.written.Wait()
	}
	if j.durable >= uint64(at) {
		return nil
	}
	return j.err
}

// Sync waits until all that was appended is durable.
func (j *Journal) Sync() error {
	j.mu.Lock()
	at := j.next
	j.mu.Unlock()
	return j.Wait(Position(at))
}

// Failed waits until a write fails, and returns its error; nil if ctx ends, or the journal is closed, before. What the
// journal's owner has changed since is not durable: its process should end, and the next one read the journal.
func (j *Journal) Failed(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-j.done:
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.err, ErrClosed) {
		return nil
	}
	return j.err
}

// Size is how many bytes of records there are since the last snapshot, with it.
func (j *Journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Close writes what is pending and releases the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closing = true
	j.work.Signal()
	j.mu.Unlock()
	<-j.done
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil && !errors.Is(j.err, ErrClosed) {
		return errors.Join(j.err, j.medium.close())
	}
	return j.medium.close()
}

// run writes what is pending, until the journal is closed or a write fails.
func (j *Journal) run(ctx context.Context) {
	defer close(j.done)
	for {
		batch, snapshot, ok := j.take()
		if !ok {
			return
		}
		var err error
		var extra int64
		if snapshot {
			err = j.medium.replace(ctx, chunksOf(batch))
		} else {
			chunk := encode(batch)
			extra = max(0, j.medium.floor()-int64(len(chunk)))
			err = j.medium.write(ctx, chunk)
		}
		j.mu.Lock()
		j.size += extra
		if err != nil {
			j.err = &WriteError{Err: err}
		} else {
			j.durable += count(batch, snapshot)
		}
		j.written.Broadcast()
		j.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func count(batch [][]byte, snapshot bool) uint64 {
	if snapshot {
		return 1
	}
	return uint64(len(batch))
}

// take waits for entries, and returns records that go together, or a snapshot.
func (j *Journal) take() (records [][]byte, snapshot, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.pending) == 0 && !j.closing {
		j.work.Wait()
	}
	if len(j.pending) == 0 {
		j.err = &WriteError{Err: ErrClosed}
		j.written.Broadcast()
		return nil, false, false
	}
	if j.pending[0].snapshot != nil {
		records = j.pending[0].snapshot
		j.drop(1)
		return records, true, true
	}
	size, n := 0, 0
	for _, e := range j.pending {
		if e.snapshot != nil || n > 0 && size+len(e.record) > maxChunk {
			break
		}
		records = append(records, e.record)
		size += len(e.record)
		n++
	}
	j.drop(n)
	return records, false, true
}

func (j *Journal) drop(n int) {
	clear(j.pending[:n])
	j.pending = j.pending[n:]
	if len(j.pending) == 0 {
		j.pending = nil
	}
}
