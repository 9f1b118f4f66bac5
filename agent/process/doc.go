// Package process finds, signals and ends the processes of a machine. All processes of
// one start of a task carry a nonce in their environment, by which [Sweep] finds those
// that left their group, session and parent.
//
// It starts no process; package command does. Start with [Traces] and [Leftovers].
package process
