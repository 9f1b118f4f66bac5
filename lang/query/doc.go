// Package query answers what editors ask at a place of a file: what may stand there, what
// stands there means, and where it is declared. It works on outlines and on tokens up to the
// place, so that a file which does not parse answers too.
//
// It evaluates nothing and reads no files.
//
// Start with [Query], its methods, and [contextAt].
package query
