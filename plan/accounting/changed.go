package accounting

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// changed returns the intervals that end since there is nothing any more to pay for, and the slices
// whose intervals change or begin. It keeps all others.
func (m *meter) changed() (gone []string, turned []*state.Slice) {
	if !m.knowsChanges() {
		m.next.Open = make(map[string]*state.UsageInterval, len(m.Doc.Slices))
		for name := range m.was.Open {
			if s := m.Doc.Slices[name]; s == nil || !isPaid(s) {
				gone = append(gone, name)
			}
		}
		for _, s := range m.Doc.Slices {
			if isPaid(s) && !m.goesOn(s) {
				turned = append(turned, s)
			}
		}
		return gone, turned
	}
	if m.next.Open = maps.Clone(m.was.Open); m.next.Open == nil {
		m.next.Open = map[string]*state.UsageInterval{}
	}
	m.touched = m.mayChange()
	for name := range m.touched {
		_, metered := m.was.Open[name]
		delete(m.next.Open, name)
		switch s := m.Doc.Slices[name]; {
		case s != nil && isPaid(s):
			if !m.goesOn(s) {
				turned = append(turned, s)
			}
		case metered:
			gone = append(gone, name)
		}
	}
	return gone, turned
}

// knowsChanges reports whether it is known which slices are used otherwise than at the last metering.
func (m *meter) knowsChanges() bool {
	if m.Since == nil || m.Since.From() == nil || m.was.At.Before(m.midnight) {
		return false
	}
	before := m.Since.From()
	return before.Metering != nil && state.SameMap(before.Metering.Open, m.was.Open) && m.Since.Cover(before, m.Doc) && maps.Equal(before.Resources, m.Doc.Resources) &&
		state.SameSlice(before.Desired.Namespaces, m.Doc.Desired.Namespaces) && state.SameSlice(before.Desired.Providers, m.Doc.Desired.Providers)
}

// mayChange are the slices that have changed, those of jobs that have, and those that are not listed
// or were not.
func (m *meter) mayChange() map[string]bool {
	found := map[string]bool{}
	m.Since.Differences(m.Since.From(), m.Doc, func(_ schema.Address, was, is *state.Job) {
		for _, j := range []*state.Job{was, is} {
			if j != nil {
				for _, name := range slices.Concat(j.Slices, j.Staged) {
					found[name] = true
				}
			}
		}
	}, func(name string, _, _ *state.Slice) { found[name] = true })
	if m.Known != nil && m.Unlisted != nil && m.Known.isOf(m.was.Open) {
		maps.Copy(found, m.Known.unseen)
		for name := range m.Unlisted {
			if m.was.Open[name] != nil {
				found[name] = true
			}
		}
		return found
	}
	for name, open := range m.was.Open {
		if !open.UnseenSince.IsZero() || m.Listed != nil && !m.Listed(name) {
			found[name] = true
		}
	}
	return found
}

// goesOn keeps the interval of a slice as it is, of which nothing changes. Nearly all are such.
func (m *meter) goesOn(s *state.Slice) bool {
	open := m.was.Open[s.Spec.Name]
	if open == nil || !open.UnseenSince.IsZero() || open.From.Before(m.midnight) || m.Listed != nil && !m.Listed(open.Slice) {
		return false
	}
	is := m.intervalOf(s)
	if is.Slice != open.Slice || !continues(open, &is) {
		return false
	}
	m.next.Open[open.Slice] = open
	return true
}
