// Package trajectory is the state machine of a trajectory pool: what it accepts, how it groups, when it has
// a batch, and who has one that is not acknowledged.
//
// It has no clock, no lock and no I/O; package roles hosts it. The methods that change it are Store, Take,
// NoteNotified, Reject, Ack, Release, Lock, Unlock, SetFloor, Returned, Flush and Rewind. The same calls in the same
// order lead to the same state, which is how a journal restores a pool. Start with Pool.
package trajectory
