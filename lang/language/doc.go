// Package language is the table of the language: the blocks and attributes that may
// stand in a configuration, with their documentation. The checks of files,
// the documents and `fray schema` are made of it.
//
// It holds no values and checks no files.
//
// Start with [Root].
package language
