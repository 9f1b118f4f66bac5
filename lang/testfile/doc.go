// Package testfile reads files of tests of a configuration, what their runs give to it,
// and what must hold of it.
//
// It plans and applies nothing; the command does.
//
// Start with [Parse] and [Run.Assert].
package testfile
