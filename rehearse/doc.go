// Package rehearse carries a configuration out on an emulated cloud, on a clock
// that jumps from event to event: a week of preemptions, stockouts and dead hosts
// takes seconds. Plan, apply and provider are the real ones, and the provider calls
// the emulator's services within the process; what is simulated is the cloud, the
// hosts of its slices with their agents, and the work that tasks do. A step happens
// only when one is due: it would decide what one at each tick decides.
//
// An oracle watches the calls that reach the cloud and the world itself, and says
// when something happened that must not, such as the deletion of a slice that was
// well. What comes out is a [Report]: how much of the time was useful, and where
// the rest went.
//
// It leaves out real agents, processes and connections, which the tests of
// providers/gcp/emulator have, and leases: one controller leads.
//
// Start with [Run]; loop.go is its life, fleet.go that of the hosts.
package rehearse
