package actorrpc

// window has the calls of one caller to one server process that are not
// answered, by their numbers, which begin with 1 and have no gaps.
type window struct {
	acked uint64      // all up to this one are answered
	calls []*delivery // from acked+1 on; nil: answered
	open  int
}

// add numbers a call.
func (w *window) add(d *delivery) {
	w.calls = append(w.calls, d)
	w.open++
	d.seq = w.acked + uint64(len(w.calls))
}

// last is the highest number given.
func (w *window) last() uint64 { return w.acked + uint64(len(w.calls)) }

// take is the unanswered call of a number, which is answered from now on, or nil.
func (w *window) take(seq uint64) *delivery {
	d := w.at(seq)
	if d == nil {
		return nil
	}
	w.calls[seq-w.acked-1] = nil
	w.open--
	for len(w.calls) > 0 && w.calls[0] == nil {
		w.calls = w.calls[1:]
		w.acked++
	}
	return d
}

// has reports whether a call is in the window.
func (w *window) has(d *delivery) bool {
	return w.at(d.seq) == d
}

// at is the unanswered call of a number, or nil.
func (w *window) at(seq uint64) *delivery {
	if seq <= w.acked || seq > w.last() {
		return nil
	}
	return w.calls[seq-w.acked-1]
}

// all are the unanswered calls in order.
func (w *window) all() []*delivery {
	found := make([]*delivery, 0, w.open)
	for _, d := range w.calls {
		if d != nil {
			found = append(found, d)
		}
	}
	return found
}
