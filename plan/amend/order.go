package amend

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// inOrder is the order in which moves are to be carried out, by index: first
// moves to an address that another statement moves away, and the particular before
// the general. Moves that wait for each other are in none.
func inOrder(moves []schema.Move) (order []int, cycles [][]int) {
	after := dependencies(moves)
	done := make([]progress, len(moves))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		switch done[i] {
		case finished:
			return
		case begun:
			cycles = append(cycles, slices.Clone(path[slices.Index(path, i):]))
			return
		case untouched:
		}
		done[i] = begun
		path = append(path, i)
		for _, on := range after[i] {
			visit(on)
		}
		path = path[:len(path)-1]
		done[i] = finished
		order = append(order, i)
	}
	for i := range moves {
		visit(i)
	}
	return order, cycles
}

type progress uint8

const (
	untouched progress = iota
	begun
	finished
)

// dependencies are, for each move, the moves that come before it.
func dependencies(moves []schema.Move) [][]int {
	statements := make([]statement, len(moves))
	from, to := map[reach][]int{}, map[reach][]int{}
	for i := range moves {
		s := newStatement(moves[i].From, moves[i].To)
		statements[i] = s
		from[s.origin()] = append(from[s.origin()], i)
		to[s.destination()] = append(to[s.destination()], i)
	}
	after := make([][]int, len(moves))
	add := func(i, on int) {
		if i != on && statements[i] != statements[on] && !slices.Contains(after[i], on) {
			after[i] = append(after[i], on)
		}
	}
	for i := range statements {
		s := &statements[i]
		for _, in := range around(s.from) {
			for _, on := range to[in] { // it brings what this one takes on
				add(i, on)
			}
			for _, general := range from[in] {
				if in.addr != s.from {
					add(general, i)
				}
			}
		}
		for _, in := range around(s.to) {
			for _, next := range from[in] {
				add(next, i)
			}
		}
	}
	return after
}
