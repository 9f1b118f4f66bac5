package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fray-ml/fray/state/logtime"
)

// datedLog is a log with the times of its bytes in a file beside it, to a millisecond.
// The times of a part are written before the part, so that whatever ends this process,
// no byte has the time of an earlier one.
//
// It takes everything: what a full disk has no space for is lost, and the log states
// that as soon as there is space. A command does not stand still because of its log.
type datedLog struct {
	file  *os.File
	times *os.File // nil: not dated
	size  int64    // of file

	now    time.Time // when what is written next arrived
	before time.Time // when the held bytes arrived, which are written first
	held   int
	marked int64 // the last mark, in milliseconds
	scale  int64 // bytes of marks

	lost int // bytes, that the log does not state yet
	why  error
}

var _ io.Writer = (*datedLog)(nil)

// openLog opens a log and its times for more. A log is worth having without times.
func openLog(path, times string) (*datedLog, error) {
	file, size, err := openEnd(path)
	if err != nil {
		return nil, err
	}
	l := &datedLog{file: file, size: size}
	if file, size, err = openEnd(times); err == nil {
		l.times, l.scale = file, size-size%logtime.Size
		if l.scale < size { // torn by a crash
			_ = file.Truncate(l.scale)
		}
	}
	return l, nil
}

// openEnd opens a file to append to it.
func openEnd(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// arrived notes when the bytes came that are written next, apart from those that the
// masking withholds: they came before.
func (l *datedLog) arrived(at time.Time, held int) {
	if held > 0 && l.held == 0 {
		l.before = l.now
	}
	l.held, l.now = held, at
}

func (l *datedLog) Write(p []byte) (int, error) {
	l.note()
	if l.lost > 0 {
		l.lost += len(p)
		return len(p), nil
	}
	if l.held > 0 {
		l.mark(l.size, l.before)
	}
	if len(p) > l.held {
		l.mark(l.size+int64(l.held), l.now)
	}
	l.held = max(0, l.held-len(p))
	n, err := l.file.Write(p)
	if l.size += int64(n); err != nil {
		l.lost, l.why = len(p)-n, err
	}
	return len(p), nil
}

// mark dates the bytes from an offset on, unless those before it are of the same millisecond.
func (l *datedLog) mark(offset int64, at time.Time) {
	if l.times == nil || at.UnixMilli() == l.marked {
		return
	}
	n, err := l.times.Write(logtime.Append(nil, logtime.Mark{Offset: offset, At: at}))
	switch {
	case err == nil:
		l.marked, l.scale = at.UnixMilli(), l.scale+int64(n)
	case n > 0: // marks stand in a row, each whole
		_ = l.times.Truncate(l.scale)
	}
}

// note writes how much is lost.
func (l *datedLog) note() {
	if l.lost == 0 {
		return
	}
	note := fmt.Sprintf("\nfray: %d bytes of output are lost: %v\n", l.lost, l.why)
	n, err := l.file.WriteString(note)
	if l.size += int64(n); err == nil {
		l.lost = 0
	}
}

// close ends the log. What could not be written by now cannot be stated either.
func (l *datedLog) close() {
	l.note()
	_ = l.file.Close()
	if l.times != nil {
		_ = l.times.Close()
	}
}
