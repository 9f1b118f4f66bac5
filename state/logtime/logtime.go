// Package logtime records when the bytes of a log were written, beside the log, which
// stays as the program wrote it. A mark is an offset and the time from which the bytes
// at and after it are; many bytes share one. It leaves out where logs and marks are kept.
//
// Start with [Index].
package logtime

import (
	"fmt"
	"io"
	"sort"
	"time"
)

// Size is the length of an encoded mark, in bytes: the offset and the milliseconds
// since 1970, six bytes each, the most significant first. Marks of one length can be
// searched in a file, and one that was torn by a crash spoils none before it.
const Size = 12

// Mark dates the bytes from an offset on.
type Mark struct {
	Offset int64
	At     time.Time // zero: it is not known when those bytes were written
}

// Append encodes a mark behind others.
func Append(to []byte, m Mark) []byte {
	var ms int64
	if !m.At.IsZero() {
		ms = m.At.UnixMilli()
	}
	for _, n := range []int64{m.Offset, ms} {
		to = append(to, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return to
}

func decode(data []byte) Mark {
	number := func(b []byte) int64 {
		var n int64
		for _, c := range b[:6] {
			n = n<<8 | int64(c)
		}
		return n
	}
	m := Mark{Offset: number(data)}
	if ms := number(data[6:]); ms != 0 {
		m.At = time.UnixMilli(ms).UTC()
	}
	return m
}

// Index is the marks of a log or of a part of it, by rising offset.
type Index []Mark

// Parse decodes marks. It leaves out a torn one at the end, and those whose offset
// does not rise.
func Parse(data []byte) Index {
	var x Index
	for ; len(data) >= Size; data = data[Size:] {
		if m := decode(data); len(x) == 0 || m.Offset > x[len(x)-1].Offset {
			x = append(x, m)
		}
	}
	return x
}

// Bytes encodes an index.
func (x Index) Bytes() []byte {
	if len(x) == 0 {
		return nil
	}
	data := make([]byte, 0, len(x)*Size)
	for _, m := range x {
		data = Append(data, m)
	}
	return data
}

// At is when the byte at an offset was written, zero if that is not known.
func (x Index) At(offset int64) time.Time {
	i := sort.Search(len(x), func(i int) bool { return x[i].Offset > offset })
	if i == 0 {
		return time.Time{}
	}
	return x[i-1].At
}

// Read returns the marks that date the bytes of a log from one offset up to another, of
// a file with so many bytes of marks; none is of an earlier offset, so that indexes of
// successive parts make one. It reads as much of the file as it takes to find them.
func Read(file io.ReaderAt, size, from, to int64) (Index, error) {
	var failed error
	at := func(i int) Mark {
		buffer := make([]byte, Size)
		if _, err := file.ReadAt(buffer, int64(i)*Size); err != nil && failed == nil {
			failed = fmt.Errorf("read the times of a log: %w", err)
		}
		return decode(buffer)
	}
	count := int(size / Size)
	first := max(0, sort.Search(count, func(i int) bool { return at(i).Offset > from })-1)
	after := first + sort.Search(count-first, func(i int) bool { return at(first+i).Offset >= to })
	if failed != nil || after == first {
		return nil, failed
	}
	data := make([]byte, (after-first)*Size)
	if _, err := file.ReadAt(data, int64(first)*Size); err != nil {
		return nil, fmt.Errorf("read the times of a log: %w", err)
	}
	x := Parse(data)
	if len(x) > 0 {
		x[0].Offset = max(x[0].Offset, from)
	}
	return x, nil
}
