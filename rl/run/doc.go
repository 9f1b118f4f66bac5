// Package run is the state machine of a run's controller: initialize, resume, validate, start, monitor, go back to a
// checkpoint, finish and stop. It also has the names of checkpoints.
//
// It has no clock, no I/O and no randomness. Machine.Next returns the one Order that is due on what was observed;
// package roles carries it out and reports Done or Failed. A machine that is restored from its State goes on where the
// former was. What it leaves out: calling modules. Start with Machine.
package run
