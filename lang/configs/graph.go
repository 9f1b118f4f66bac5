package configs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/diagnose"
)

// Ordered returns the nodes so that each comes after those it has edges to, and
// the cycles found on the way, each as a path that ends where it began. It does
// not recurse: a chain may be as long as the configuration.
func Ordered[N comparable](nodes []N, edges func(N) []N) (order []N, cycles [][]N) {
	const (
		unseen = iota
		open
		done
	)
	type frame struct {
		node N
		next []N
	}
	state := make(map[N]uint8, len(nodes))
	var stack []frame
	for _, start := range nodes {
		if state[start] != unseen {
			continue
		}
		state[start] = open
		stack = append(stack, frame{start, edges(start)})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.node] = done
				order = append(order, top.node)
				stack = stack[:len(stack)-1]
				continue
			}
			to := top.next[0]
			top.next = top.next[1:]
			switch state[to] {
			case unseen:
				state[to] = open
				stack = append(stack, frame{to, edges(to)})
			case open:
				from := slices.IndexFunc(stack, func(f frame) bool { return f.node == to })
				var cycle []N
				for _, f := range stack[from:] {
					cycle = append(cycle, f.node)
				}
				cycles = append(cycles, append(cycle, to))
			}
		}
	}
	return order, cycles
}

// ReportCycle reports nodes that need each other.
func ReportCycle(r *diagnose.Report, rng hcl.Range, names []string) {
	if len(names) == 2 {
		r.ErrorAt(rng, "Refers to itself", fmt.Sprintf("%s needs its own value. Take the reference out.", names[0]))
		return
	}
	r.ErrorAt(rng, "Cycle of references", fmt.Sprintf(
		"These need each other: %s. Take one of the references out.", strings.Join(names, " -> ")))
}
