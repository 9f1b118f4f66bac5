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
		order := 0
		switch {
		case len(was) == 0:
			order = 1
		case len(is) == 0:
			order = -1
		default:
			order = was[0].Addr.Compare(is[0].Addr)
		}
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

func samePending(a, b *Pending) bool {
	return a.Underway == b.Underway && a.Blocked == b.Blocked && slices.Equal(a.Reasons, b.Reasons)
}

// apply returns the list that the operations make of one, which stays as it is.
func (o pendingOps) apply(list []Pending) []Pending {
	if len(o.drop)+len(o.put) == 0 {
		return list
	}
	out := make([]Pending, 0, len(list)+len(o.put))
	for len(o.drop)+len(o.put) > 0 {
		drops := len(o.put) == 0 || len(o.drop) > 0 && o.drop[0].Compare(o.put[0].Addr) < 0
		var addr schema.Address
		if drops {
			addr, o.drop = o.drop[0], o.drop[1:]
		} else {
			addr = o.put[0].Addr
		}
		n, found := slices.BinarySearchFunc(list, addr, func(w Pending, a schema.Address) int { return w.Addr.Compare(a) })
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
