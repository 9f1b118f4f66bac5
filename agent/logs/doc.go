// Package logs copies a task's output to the store ([Shipper]), and streams it to
// callers ([Stream]).
//
// It leaves out when that is done, and reading logs from the store.
package logs
