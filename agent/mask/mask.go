// Package mask hides sensitive values in text that is kept or shown, also where
// a program wrote them encoded, and where they are spread over lines or writes.
//
// It works on bytes and knows nothing of tasks. What it does not find: a value
// shorter than [Least], the words of [isWord], a value that a program changed
// in a way that encodings does not list, such as one that it encrypted. Start
// with [New] and [Writer].
package mask

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// Marker is what stands in place of a sensitive value.
const Marker = "(sensitive value)"

// Least is the length in bytes below which a value is not looked for.
const Least = schema.LeastSecret

// anchor is how many bytes of a pattern decide whether it is looked at closely.
const anchor = 4

var _ [Least - anchor]struct{} // nothing shorter than an anchor is looked for

// Set is what is to be hidden, compiled. The zero Set hides nothing. It is safe
// for concurrent use.
type Set struct {
	patterns map[uint32][][]byte // by their first bytes, the longest first
	begins   map[string]int      // the first 1 to anchor-1 bytes, with the length of the shortest pattern that begins so
	filter   []uint64            // a bit for each hash of first bytes
	shift    uint                // of hashes
}

// New compiles values in clear, with their parts and encodings.
func New(values []string) *Set {
	s := &Set{}
	seen := map[string]bool{}
	for _, value := range values {
		for _, part := range parts(value) {
			for _, text := range encodings(part) {
				s.add(text, seen)
			}
		}
	}
	for _, with := range s.patterns {
		slices.SortFunc(with, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	}
	s.makeFilter(len(seen))
	return s
}

// add takes one pattern in. Line breaks are no part of it, as they are none of
// the text in which it is looked for.
func (s *Set) add(text string, seen map[string]bool) {
	text = withoutBreaks(text)
	if len(text) < Least || seen[text] {
		return
	}
	if s.patterns == nil {
		s.patterns, s.begins = map[uint32][][]byte{}, map[string]int{}
	}
	seen[text] = true
	key := binary.LittleEndian.Uint32([]byte(text))
	s.patterns[key] = append(s.patterns[key], []byte(text))
	for n := 1; n < anchor; n++ {
		if least, is := s.begins[text[:n]]; !is || len(text) < least {
			s.begins[text[:n]] = len(text)
		}
	}
}

// Bounds of the filter's size, as a power of two. With 32 bits for each pattern
// 3% of all positions are looked at for nothing.
const (
	leastFilter = 12
	mostFilter  = 20
)

func (s *Set) makeFilter(patterns int) {
	if patterns == 0 {
		return
	}
	size := uint(leastFilter)
	for size < mostFilter && 1<<size < 32*patterns {
		size++
	}
	s.filter, s.shift = make([]uint64, 1<<size/64), 32-size
	for key := range s.patterns {
		bit := hash(key, s.shift)
		s.filter[bit/64] |= 1 << (bit % 64)
	}
}

// hash is multiplicative, as of Knuth.
func hash(key uint32, shift uint) uint32 { return (key * 0x9E3779B1) >> (shift & 31) }

// Empty reports whether there is nothing to hide.
func (s *Set) Empty() bool { return s == nil || len(s.patterns) == 0 }

// String returns text with everything hidden.
func (s *Set) String(text string) string {
	if s.Empty() {
		return text
	}
	var out strings.Builder
	w := NewWriter(s, &out)
	_, err := w.Write([]byte(text))
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return Marker // a Builder takes everything; nothing unmasked leaves here in any case
	}
	return out.String()
}

// candidate is the first place from i on where a pattern may begin, the end of
// the text if there is none.
func (s *Set) candidate(text []byte, i int) int {
	filter, shift := s.filter, s.shift
	for ; i+anchor <= len(text); i++ {
		bit := hash(binary.LittleEndian.Uint32(text[i:]), shift)
		if filter[bit/64]>>(bit%64)&1 != 0 {
			return i
		}
	}
	for ; i < len(text); i++ {
		if _, begins := s.begins[string(text[i:])]; begins {
			return i
		}
	}
	return i
}

// match returns how long the longest pattern is that text begins with, 0: none,
// and whether a longer one may follow once there is more text.
func (s *Set) match(text []byte) (length int, open bool) {
	if len(text) < anchor {
		_, open = s.begins[string(text)]
		return 0, open
	}
	for _, p := range s.patterns[binary.LittleEndian.Uint32(text)] {
		switch {
		case len(p) <= len(text):
			if bytes.HasPrefix(text, p) {
				return len(p), open
			}
		case bytes.HasPrefix(p, text):
			open = true
		}
	}
	return 0, open
}

// shortest is the length of the shortest pattern that begins with text and is
// longer; 0: there is none.
func (s *Set) shortest(text []byte) int {
	if len(text) < anchor {
		return s.begins[string(text)]
	}
	least := 0
	for _, p := range s.patterns[binary.LittleEndian.Uint32(text)] {
		if len(p) > len(text) && bytes.HasPrefix(p, text) {
			least = len(p) // they are sorted
		}
	}
	return least
}

func withoutBreaks(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(text)
}
