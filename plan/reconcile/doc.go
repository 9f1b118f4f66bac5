// Package reconcile composes the stages of a plan. [Diff] compares what is desired
// with what the state remembers and what was just observed, and returns all
// consequences: what to show, what to do now, and the next state.
//
// It is pure: no clock, no I/O, no logs, no randomness. Carrying actions out is
// apply's; showing a plan is plan/render's. Start with [Whole]: each line of it is a
// stage, and what it passes to the next is a value that does not change.
package reconcile
