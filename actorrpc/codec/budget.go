package codec

import (
	"bytes"
	"fmt"
)

// DefaultMemory is how much memory decoded values may take, in bytes, where a caller states no limit.
const DefaultMemory = 64 << 20

// TooLargeError reports that values would take more memory than the reader allows.
// A message of one-byte empty maps would otherwise take eighty times its size.
type TooLargeError struct {
	Limit uint64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the values would take more than %s of memory (max_message_bytes of the receiver); "+
		"send arrays or bytes instead of many small values, or raise max_message_bytes there", mebibytes(e.Limit))
}

func mebibytes(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%g MiB", float64(n*10>>20)/10)
}

// budget is how much memory the values of one message may still take, in bytes.
// Every allocation whose size the sender chooses is taken from it first.
type budget struct{ left, limit uint64 }

func newBudget(limit uint64) *budget {
	if limit == 0 {
		limit = DefaultMemory
	}
	return &budget{left: limit, limit: limit}
}

// take notes n bytes, or fails if they are not left.
func (b *budget) take(n uint64) error {
	if n > b.left {
		return &TooLargeError{Limit: b.limit}
	}
	b.left -= n
	return nil
}

// times takes n values of a size. Both are of what fits into a message and a type.
func (b *budget) times(n int, size uintptr) error {
	if size > 0 && uint64(n) > b.left/uint64(size) {
		return &TooLargeError{Limit: b.limit}
	}
	return b.take(uint64(n) * uint64(size))
}

// What values take as Go's runtime allocates them on a machine of 64 bits: what an
// interface points to, with the allocator's rounding.
const (
	slotSize   = 18 // of a list: an interface, and an eighth for rounding up
	rowSize    = 32 // of a map of a tree: a string or an interface, and an interface
	numberSize = 8  // an int from 256 on, a float
	headerSize = 24 // a slice, a string, a time: what an interface points to
	extSize    = 256
	pageSize   = 8 << 10 // the runtime's: what a large allocation is rounded up to
)

// textSize is what a string of n bytes takes.
func textSize(n int) uint64 { return uint64(n) + min(uint64(n)/8, pageSize) + headerSize }

// tableSize is what a map takes that is made for n rows of a size: one group of eight
// rows, or tables of a power of two that are filled to seven eighths at most.
func tableSize(n int, row uintptr) uint64 {
	const (
		mapSize = 48
		group   = 8 // rows
		table   = 128
	)
	size := uint64(row) + 1 // and a control byte
	switch {
	case n == 0:
		return mapSize
	case n <= group:
		return mapSize + group*size + group*size/8
	}
	return mapSize + table + uint64(n)*size*5/2
}

// takeJSON takes what a JSON text takes while it is parsed: its parser keeps two or
// three copies of it, and values grow while their number is not known. It counts signs
// within strings, too, which makes it a bound from above. Twice the memory is allowed,
// as such a message is itself that much smaller.
func (b *budget) takeJSON(data []byte) error {
	if n := uint64(len(data)); n > b.left/2 {
		return &TooLargeError{Limit: b.limit}
	}
	weight := 3 * uint64(len(data))
	for sign, cost := range map[string]uint64{"{": tableSize(8, rowSize), "[": 96, ",": 100, ":": 100} {
		weight += cost * uint64(bytes.Count(data, []byte(sign)))
	}
	return b.take((weight + 1) / 2)
}
