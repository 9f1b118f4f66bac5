// Package weights is the state machine of weight synchronization: when rollouts wait, when weights are copied to the
// inference services, and when pools and loader are unlocked, in the modes sync, batch-async and fully-async.
//
// It has no clock, no lock and no I/O. Its methods return the Actions that are to be carried out, in their
// order; package roles does that and reports the end of a copy by Copied or CopyFailed. What it leaves out: the
// copying, and how often a failed copy is tried again. Start with Machine.
package weights
