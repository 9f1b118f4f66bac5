package schema

import (
	"cmp"
	"slices"
)

// Nearest returns the candidate that a misspelt name most likely meant, or "".
// A candidate is near within a third of its length, at least one edit, as long as
// something of it is left.
func Nearest(name string, candidates []string) string {
	type scored struct {
		name     string
		distance int
	}
	var near []scored
	for _, c := range candidates {
		if d := editDistance(name, c); d <= max(1, len(c)/3) && d < max(len(c), len(name)) || name == c {
			near = append(near, scored{c, d})
		}
	}
	if len(near) == 0 {
		return ""
	}
	return slices.MinFunc(near, func(a, b scored) int {
		return cmp.Or(
			cmp.Compare(a.distance, b.distance),
			cmp.Compare(CommonPrefix(name, b.name), CommonPrefix(name, a.name)),
			cmp.Compare(a.name, b.name),
		)
	}).name
}

// CommonPrefix is the number of bytes that a and b begin with in common.
func CommonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// editDistance counts the letters to insert, remove, replace or swap with their
// neighbor to turn a into b (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before, last []int // the two rows above
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		before, last, row = last, row, make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(t)]
}
