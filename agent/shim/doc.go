// Package shim is the process between an agent and a task's command. It outlives the
// agent: it starts the command, takes over orphaned descendants, masks secrets in the
// output, ends everything when asked to, and leaves an exit record.
//
// It leaves out why a task runs or ends, and who starts the shim. Start with [Run].
package shim
