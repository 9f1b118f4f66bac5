// Package load reads and parses the files of a configuration, and those of the modules
// that it calls; variable files, too.
//
// It evaluates nothing and does not know which blocks there are, but for module blocks.
//
// Start with [Parser.Parse] and [Source].
package load
