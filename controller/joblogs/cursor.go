package joblogs

import (
	"encoding/binary"
	"errors"
)

// cursor is how far a monitor has come: all attempts before one, and of that
// one some of each task.
type cursor struct {
	attempt int  // 0: none was begun
	done    bool // all of that attempt
	offsets []int64
}

// cursorFormat begins the bytes of a cursor.
const cursorFormat = 1

// maxCursorTasks bounds the memory that a client's cursor may take.
const maxCursorTasks = 1 << 20

// isBefore reports whether the attempt of a number is still to be sent.
func (c *cursor) isBefore(attempt int) bool {
	return attempt > c.attempt || attempt == c.attempt && !c.done
}

// begin goes on to an attempt, which may be the one that was begun.
func (c *cursor) begin(attempt int) {
	if attempt != c.attempt {
		*c = cursor{attempt: attempt}
	}
}

func (c *cursor) offset(task int) int64 {
	if task < len(c.offsets) {
		return c.offsets[task]
	}
	return 0
}

func (c *cursor) set(task int, offset int64) {
	for len(c.offsets) <= task {
		c.offsets = append(c.offsets, 0)
	}
	c.offsets[task] = offset
}

// bytes is the cursor for a response: varints, since there may be many tasks.
func (c *cursor) bytes() []byte {
	out := []byte{cursorFormat}
	out = binary.AppendUvarint(out, uint64(c.attempt))
	if c.done {
		return append(out, 1)
	}
	out = append(out, 0)
	for _, offset := range c.offsets {
		out = binary.AppendUvarint(out, uint64(offset))
	}
	return out
}

var errCursor = errors.New("not a cursor")

// parseCursor reads what bytes made; nothing is the beginning.
func parseCursor(data []byte) (cursor, error) {
	if len(data) == 0 {
		return cursor{}, nil
	}
	if data[0] != cursorFormat {
		return cursor{}, errCursor
	}
	attempt, n := binary.Uvarint(data[1:])
	rest := data[1+max(n, 0):]
	if n <= 0 || attempt > 1<<31 || len(rest) == 0 || rest[0] > 1 || rest[0] == 1 && len(rest) > 1 {
		return cursor{}, errCursor
	}
	c := cursor{attempt: int(attempt), done: rest[0] == 1}
	for rest = rest[1:]; len(rest) > 0; {
		offset, n := binary.Uvarint(rest)
		if n <= 0 || int64(offset) < 0 || len(c.offsets) == maxCursorTasks {
			return cursor{}, errCursor
		}
		c.offsets = append(c.offsets, int64(offset))
		rest = rest[n:]
	}
	return c, nil
}
