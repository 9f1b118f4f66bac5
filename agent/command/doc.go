// Package command finds and runs programs of a host, and edits lists of environment
// variables.
//
// It leaves out tasks, which run under a shim.
package command
