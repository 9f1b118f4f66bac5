package profile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// share is what of a profile a function has.
type share struct {
	name       string
	self, with float64 // in the function itself; in it and what it calls
}

// Top lists the functions in which most of a profile is, as lines.
func Top(g Graph, most int) string {
	total := g.Total()
	if total <= 0 {
		return "no samples: the process ran nothing while it was measured\n"
	}
	shares := map[string]*share{}
	of := func(name string) *share {
		s := shares[name]
		if s == nil {
			s = &share{name: name}
			shares[name] = s
		}
		return s
	}
	for _, stack := range g.Stacks {
		if len(stack.Frames) == 0 {
			continue
		}
		of(stack.Frames[len(stack.Frames)-1]).self += stack.Weight
		seen := map[string]bool{}
		for _, frame := range stack.Frames {
			if !seen[frame] {
				seen[frame] = true
				of(frame).with += stack.Weight
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(shares), func(a, b *share) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.with, a.with), cmp.Compare(a.name, b.name))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "%s in all\n  self   with calls  function\n", amount(total, g.Unit))
	for i, s := range sorted {
		if i == most || s.self == 0 && i > 0 {
			break
		}
		fmt.Fprintf(&out, "%5.1f%%       %5.1f%%  %s\n", 100*s.self/total, 100*s.with/total, inert(s.name))
	}
	return out.String()
}
