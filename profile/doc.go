// Package profile has what a profile of a process is: its kinds, the formats in which it comes,
// its stacks with their weights, and the flame graph that is drawn of them.
//
// It leaves out measuring, which agent/profiler does on the host, and storing. Start with [Header].
package profile
