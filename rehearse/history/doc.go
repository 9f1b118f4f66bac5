// Package history makes a scenario of what the events of a stack tell of its cloud: how
// long slices took to come up and to go, which were preempted or lost a host, and when
// zones had no capacity.
//
// It leaves out what events do not tell: what other stacks had, capacity that was not
// asked for, faults of calls, and what jobs did. Start with [Of].
package history
