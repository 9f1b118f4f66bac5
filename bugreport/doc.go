// Package bugreport collects what a defect of fray is found by into one archive: the state, events, logs,
// agents, versions and timings of a stack, without secrets.
//
// Each collector is bounded in time and size and fails by itself. Nothing leaves the machine. Start with [Run].
package bugreport
