package telemetry

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// How many values of a label have series of their own. What is declared beyond that, and what
// programs make up, is summed up in one series of the value "other", so that a large stack has
// as many series as a small one.
const (
	mostNamespaces   = 100
	mostReservations = 100
	mostPlaces       = 200 // pairs of a zone and a type
	mostReceivers    = 100
	mostLabel        = 128 // bytes of a value
)

// otherLabel is what has no series of its own.
const otherLabel = "other"

// bound chooses which values of a label have series of their own. A value keeps its series as
// long as it is there: a dashboard's lines do not jump. It is safe for concurrent use.
type bound struct {
	most int

	mu  sync.Mutex
	own map[string]bool
}

// choose takes all values of now, the largest of which come first to series that are free.
func (b *bound) choose(sizes map[string]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := make(map[string]bool, b.most)
	var fresh []string
	for value := range sizes {
		if b.own[value] {
			own[value] = true
		} else {
			fresh = append(fresh, value)
		}
	}
	slices.SortFunc(fresh, func(x, y string) int { return cmp.Or(cmp.Compare(sizes[y], sizes[x]), cmp.Compare(x, y)) })
	for _, value := range fresh[:min(len(fresh), b.most-len(own))] {
		own[value] = true
	}
	b.own = own
}

// has reports whether a value has series of its own.
func (b *bound) has(value string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own[value]
}

// admit is has for a counter, whose series stay: the first values get one.
func (b *bound) admit(value string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.own[value] && len(b.own) < b.most {
		if b.own == nil {
			b.own = map[string]bool{}
		}
		b.own[value] = true
	}
	return b.own[value]
}

// named returns a tally in which the values of one label that have no series of their own are
// summed up.
func (b *bound) named(t tally, label int) tally {
	sizes := map[string]float64{}
	for key, n := range t {
		sizes[key[label]] += n
	}
	b.choose(sizes)
	out := make(tally, len(t))
	for key, n := range t {
		if !b.has(key[label]) {
			key[label] = otherLabel
		}
		out[key] += n
	}
	return out
}

// labelValue is a text as the value of a label: valid UTF-8 of a bounded length, without what
// does something to a terminal.
func labelValue(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= mostLabel {
		return text
	}
	cut := mostLabel
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
