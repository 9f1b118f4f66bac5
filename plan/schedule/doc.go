// Package schedule decides who is placed, who waits and who makes room: [Claims]
// are what jobs ask of capacity in the order of the queue, [Victims] end for the
// sake of others, the [Placer] gives slices to jobs and starts them.
//
// It does not observe attempts or slices; that has happened in plan/lifecycle before
// it. Start with place.go.
package schedule
