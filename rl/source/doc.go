// Package source reads the items of a data loader: generated ones, JSON lines, or the files of a directory.
//
// An item is read whenever it is asked for, so that each caller has a copy of its own. What it leaves out: the
// order of items and who gets them, which is package loader. Start with Source.
package source
