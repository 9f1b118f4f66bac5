// Package record writes what roles acknowledge into their journals, and reads it again: commands that change a state machine, with
// snapshots of it, or the newest state of a small one. It leaves out the journals, and what commands mean. Start at Recorder.
package record
