// Package journal keeps what a role of a run has acknowledged: records in order, written before the answer and
// read again after the process has died.
//
// Records that wait while others are written go together (group commit). A chunk that was being written when the
// process died is dropped: it was not acknowledged. Rewrite replaces everything by a snapshot, so that a journal's
// size follows what lives.
//
// A journal is in a directory of one machine (OpenDir) or in a store (OpenStore), where it outlives the machine.
// One process writes it: in a directory a lock holds that, in a store every write is conditional, and a process
// that was replaced gets ErrReplaced. What records mean is their role's concern. Start with Journal.
package journal
