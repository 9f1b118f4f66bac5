package accounting

import "github.com/fray-ml/fray/state"

// Known is what is known of the open intervals of a metering, so that the next one need not look at
// all of them. The zero Known knows of none.
type Known struct {
	open       map[string]*state.UsageInterval
	unseen     map[string]bool // slices that were not listed
	priced     map[string]bool // slices that cost money
	namespaces map[string]int  // how many intervals each has
}

// isOf reports whether that is known of these intervals.
func (k *Known) isOf(open map[string]*state.UsageInterval) bool {
	return k.open != nil && state.SameMap(k.open, open)
}

// add counts an interval n times.
func (k *Known) add(name string, i *state.UsageInterval, n int) {
	if k.namespaces[i.Namespace] += n; k.namespaces[i.Namespace] == 0 {
		delete(k.namespaces, i.Namespace)
	}
	note := func(of map[string]bool, holds bool) {
		if holds && n > 0 {
			of[name] = true
		} else {
			delete(of, name)
		}
	}
	note(k.unseen, !i.UnseenSince.IsZero())
	note(k.priced, isPriced(i.Provider) || i.PerHour != (state.Dollars{}))
}

// remember takes in what the open intervals are now.
func (m *meter) remember() {
	if m.Known == nil {
		m.Known = &Known{}
	}
	k, next := m.Known, m.next.Open
	if m.touched == nil || !k.isOf(m.was.Open) {
		*k = Known{unseen: map[string]bool{}, priced: map[string]bool{}, namespaces: map[string]int{}}
		for name, i := range next {
			k.add(name, i, 1)
		}
		k.open = next
		return
	}
	for name := range m.touched {
		if was := m.was.Open[name]; was != nil {
			k.add(name, was, -1)
		}
		if is := next[name]; is != nil {
			k.add(name, is, 1)
		}
	}
	k.open = next
}
