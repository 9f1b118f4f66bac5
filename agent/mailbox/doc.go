// Package mailbox is the agent's side of the mailbox in the store: it polls the
// assignment of a slice ([Poller]) and writes the report of a host ([Reporter]).
//
// It leaves out what an assignment asks for.
package mailbox
