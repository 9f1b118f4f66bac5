package plan

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// pendingOps turns one list of what waits into another, both in address order:
// drop names what is left out of it and put holds what is new or otherwise,
// in order.
type pendingOps struct {
	drop []schema.Address
	put  []Pending
}

// opsBetween compares two lists.
func opsBetween(was, is []Pending) pendingOps {
	var ops pendingOps
	for len(was)+len(is) > 0 {
		order := foremost(was, is)
		if order < 0 {
			ops.drop = append(ops.drop, was[0].Addr)
		} else if order > 0 || !samePending(&was[0], &is[0]) {
			ops.put = append(ops.put, is[0])
		}
		if order <= 0 {
			was = was[1:]
		}
		if order >= 0 {
			is = is[1:]
		}
	}
	return ops
}

// foremost is below 0 if the first of was comes before that of is, 0 if they are
// of the same address, above 0 if it comes later.
func foremost(was, is []Pending) int {
	switch {
	case len(was) == 0:
		return 1
	case len(is) == 0:
		return -1
	}
	return was[0].Addr.Compare(is[0].Addr)
}

func samePending(a, b *Pending) bool {
	return a.Kind == b.Kind && a.Underway == b.Underway && a.Blocked == b.Blocked && slices.Equal(a.Reasons, b.Reasons)
}

// fewOps is how many operations are better carried out in place, each at the
// cost of moving a part of the list, than by writing the list anew.
const fewOps = 24

func (o pendingOps) len() int { return len(o.drop) + len(o.put) }

// place is where an address is in a list, or belongs.
func place(list []Pending, addr schema.Address) (int, bool) {
	return slices.BinarySearchFunc(list, addr, func(w Pending, a schema.Address) int { return w.Addr.Compare(a) })
}

// written returns what the operations make of a list, which stays as it is.
func (o pendingOps) written(list []Pending) []Pending {
	out := make([]Pending, 0, len(list)+len(o.put))
	for o.len() > 0 {
		drops := len(o.put) == 0 || len(o.drop) > 0 && o.drop[0].Compare(o.put[0].Addr) < 0
		var addr schema.Address
		if drops {
			addr, o.drop = o.drop[0], o.drop[1:]
		} else {
			addr = o.put[0].Addr
		}
		n, found := place(list, addr)
		out, list = append(out, list[:n]...), list[n:]
		if found {
			list = list[1:]
		}
		if !drops {
			out, o.put = append(out, o.put[0]), o.put[1:]
		}
	}
	return append(out, list...)
}

// inPlace is written in the list's own memory.
func (o pendingOps) inPlace(list []Pending) []Pending {
	for _, addr := range o.drop {
		n, found := place(list, addr)
		switch {
		case !found:
		case n < len(list)/2: // what is before it is less to move
			copy(list[1:], list[:n])
			list[0] = Pending{}
			list = list[1:]
		default:
			list = slices.Delete(list, n, n+1)
		}
	}
	for i := range o.put {
		if n, found := place(list, o.put[i].Addr); found {
			list[n] = o.put[i]
		} else {
			list = slices.Insert(list, n, o.put[i])
		}
	}
	return list
}

// ledger is the list of what waits, plan after plan. Like twin, it builds a list
// from the one before the last, so that few changes cost little.
type ledger struct {
	last   []Pending
	before []Pending  // nil: there is none to be had
	ops    pendingOps // that make last of before
}

// take begins with a list that somebody else has made.
func (l *ledger) take(list []Pending) { *l = ledger{last: list} }

// turn returns what the operations make of the last list.
func (l *ledger) turn(ops pendingOps) []Pending {
	if ops.len() == 0 {
		return l.last
	}
	before := l.last
	if l.before != nil && l.ops.len()+ops.len() <= fewOps {
		l.last = ops.inPlace(l.ops.inPlace(l.before))
	} else {
		l.last = ops.written(l.last)
	}
	l.before, l.ops = before, ops
	return l.last
}
