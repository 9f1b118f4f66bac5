// Package activity is the state machine of the activity tracker: which module works at what, which processes live,
// what errors they have reported, and the training step.
//
// It has no clock, no lock and no I/O: the time is an argument. A token belongs to a process (the incarnation of its
// module) and expires with it, so that a dead process never keeps a run from being quiescent. What it leaves out:
// leases of tasks, which are the data loader's, and asking modules for their health. Start with Tracker.
package activity
