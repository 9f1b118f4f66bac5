package mask

import (
	"bytes"
	"io"
)

// Writer hides the values of a Set in a stream. What it writes does not depend
// on how the stream is cut into writes. It keeps the end of the stream back as
// long as that may be the beginning of a value: see [Writer.Settle] and
// [Writer.Flush]. It is not for concurrent use.
//
// Values are looked for as if there were no line breaks, since programs wrap
// what they write; breaks within a value vanish with it.
type Writer struct {
	set *Set
	to  io.Writer

	text   []byte      // without line breaks, from the first byte that still matters
	breaks []lineBreak // in text, in order
	scan   int         // up to here it is known where values begin
	out    int         // up to here text is written, or hidden
	until  int         // the last value that was found ends here; below 0: none that matters

	line []byte // what is written at once
}

// lineBreak is a byte that was taken out of the text.
type lineBreak struct {
	at   int // before which byte
	char byte
}

// NewWriter returns a Writer to another one.
func NewWriter(s *Set, to io.Writer) *Writer { return &Writer{set: s, to: to, until: -1} }

// Write takes text in and writes what is decided. The error is that of the
// writer behind; text that it did not take is lost.
func (w *Writer) Write(p []byte) (int, error) {
	if w.set.Empty() {
		return w.to.Write(p)
	}
	w.take(p)
	w.advance(false)
	return len(p), w.write()
}

// Pending reports whether text is kept back.
func (w *Writer) Pending() bool { return w.out < len(w.text) || len(w.breaks) > 0 }

// Held is how many bytes of text are kept back, in front of what is written next.
func (w *Writer) Held() int { return len(w.text) - w.out + len(w.breaks) }

// Flush writes all that is kept back: the stream has ended.
func (w *Writer) Flush() error {
	if w.set.Empty() {
		return nil
	}
	w.advance(true)
	return w.write()
}

// mostShown is the most of a value's beginning that Settle shows, in bytes.
const mostShown = 8

// Settle writes what is kept back of a stream that has paused, where that shows
// too little of any value to be of use: an eighth of it at most, but at least
// one byte and at most mostShown. If the rest of the value follows, it is hidden.
func (w *Writer) Settle() error {
	if !w.Pending() {
		return nil
	}
	hidden := max(w.until, w.out)
	for i := w.scan; i < len(w.text); i++ {
		if length, _ := w.set.match(w.text[i:]); length > 0 && i <= hidden {
			hidden = max(hidden, i+length)
		}
		shown := len(w.text) - max(i, hidden)
		if least := w.set.shortest(w.text[i:]); least > 0 && shown > min(mostShown, max(1, least/8)) {
			return nil
		}
	}
	for i := w.scan; i < len(w.text); i++ {
		if length, _ := w.set.match(w.text[i:]); length > 0 {
			w.hide(i, i+length)
		}
	}
	w.emit(len(w.text))
	return w.write()
}

// take appends to the text what is none of its breaks.
func (w *Writer) take(p []byte) {
	w.drop()
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			n = len(p)
		}
		w.takeLine(p[:n])
		if n < len(p) {
			w.breaks = append(w.breaks, lineBreak{at: len(w.text), char: '\n'})
			n++
		}
		p = p[n:]
	}
}

func (w *Writer) takeLine(p []byte) {
	for {
		n := bytes.IndexByte(p, '\r')
		if n < 0 {
			w.text = append(w.text, p...)
			return
		}
		w.text = append(w.text, p[:n]...)
		w.breaks = append(w.breaks, lineBreak{at: len(w.text), char: '\r'})
		p = p[n+1:]
	}
}

// drop forgets what is written and decided.
func (w *Writer) drop() {
	n := min(w.scan, w.out)
	if n == 0 {
		return
	}
	w.text = w.text[:copy(w.text, w.text[n:])]
	w.scan, w.out, w.until = w.scan-n, w.out-n, max(w.until-n, -1)
	for i := range w.breaks {
		w.breaks[i].at -= n
	}
}

// advance finds the values of the text and emits what is decided; at the end of
// the stream that is everything.
func (w *Writer) advance(end bool) {
	text, set := w.text, w.set
	i, open := w.scan, false
	for ; ; i++ {
		if i = set.candidate(text, i); i == len(text) {
			break
		}
		length, more := set.match(text[i:])
		if more && !end {
			open = true
			break
		}
		if length > 0 {
			w.hide(i, i+length)
		}
	}
	w.scan = i
	if open {
		w.emit(i)
		return
	}
	w.emit(len(text))
}

// hide takes in that a value stands from one byte up to another. All that stands
// before it is emitted. One that touches the last one becomes part of that,
// unless a line ends between them.
func (w *Writer) hide(from, to int) {
	w.emit(from)
	if to <= w.out {
		return // written by Settle, as hidden as it is
	}
	if w.until < from {
		w.line = append(w.line, Marker...)
	}
	w.until = max(w.until, to)
}

// emit writes the text up to a byte, and the breaks before that byte, as far as
// they are not hidden.
func (w *Writer) emit(to int) {
	done := 0
	for _, b := range w.breaks {
		if b.at > to {
			break
		}
		w.emitText(b.at)
		if b.at >= w.until {
			w.line, w.until = append(w.line, b.char), -1
		}
		done++
	}
	w.breaks = w.breaks[:copy(w.breaks, w.breaks[done:])]
	w.emitText(to)
}

func (w *Writer) emitText(to int) {
	if from := max(w.out, w.until); from < to {
		w.line, w.until = append(w.line, w.text[from:to]...), -1
	}
	w.out = max(w.out, to)
}

func (w *Writer) write() error {
	if len(w.line) == 0 {
		return nil
	}
	_, err := w.to.Write(w.line)
	w.line = w.line[:0]
	return err
}
