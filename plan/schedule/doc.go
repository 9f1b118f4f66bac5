// Package schedule decides who is placed, who waits and who makes room. [Schedule] is a
// pure function of an [Input]. Inside, [Claims] are what jobs ask of capacity in the
// order of the queue, [Victims] end to make room for others, and the [Placer] gives
// slices to jobs and starts them.
//
// It does not observe attempts or slices; that has happened in plan/lifecycle before
// it. Start with schedule.go, then place.go.
package schedule
