// Package outline is the structure of files while they are edited: parts of lines, each
// with the top-level blocks in it, what they declare and what they refer to. An edit parses
// the part that it changes, and nothing else; all values are immutable.
//
// It evaluates nothing, reads no files, and does not report what is wrong with blocks.
//
// Start with [Parse], [File.Edit] and [Directory.Affected].
package outline
