// Package hostdir is the directory of a host: the names of its files, the locks and
// their holders, the records of a task, the agent's memory and the host's keys. Agent
// and shim, which outlive each other, know of each other by it.
//
// It leaves out when a record is written. Start with [Dir] and [Intent].
package hostdir
