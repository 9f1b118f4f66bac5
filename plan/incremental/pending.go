package incremental

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// pendingOps turns one list of what waits into another, both in address order:
// drop names what is left out of it and put holds what is new or otherwise,
// in order.
type pendingOps struct {
	drop []schema.Address
	put  []plan.Pending
}

// opsBetween compares two lists.
func opsBetween(was, is []plan.Pending) pendingOps {
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
func foremost(was, is []plan.Pending) int {
	switch {
	case len(was) == 0:
		return 1
	case len(is) == 0:
		return -1
	}
	return was[0].Addr.Compare(is[0].Addr)
}

func samePending(a, b *plan.Pending) bool {
	return a.Kind == b.Kind && a.Underway == b.Underway && a.Blocked == b.Blocked && slices.Equal(a.Reasons, b.Reasons)
}

func (o pendingOps) len() int { return len(o.drop) + len(o.put) }

// place is where an address is in a list, or belongs.
func place(list []plan.Pending, addr schema.Address) (int, bool) {
	return slices.BinarySearchFunc(list, addr, func(w plan.Pending, a schema.Address) int { return w.Addr.Compare(a) })
}

// written returns what the operations make of a list, which stays as it is.
func (o pendingOps) written(list []plan.Pending) []plan.Pending {
	out := make([]plan.Pending, 0, len(list)+len(o.put))
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

// ledger is the list of what waits, plan after plan.
type pendingList struct{ last []plan.Pending }

// take begins with another list.
func (l *pendingList) take(list []plan.Pending) { l.last = list }

// turn returns what the operations make of the last list, which stays as it is.
func (l *pendingList) turn(ops pendingOps) []plan.Pending {
	if ops.len() > 0 {
		l.last = ops.written(l.last)
	}
	return l.last
}
