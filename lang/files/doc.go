// Package files reads the files of configurations, and those that their functions read,
// within limits.
//
// It parses nothing.
//
// Start with [System], the interface that recordings implement too, and [Disk].
package files
