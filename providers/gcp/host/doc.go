// Package host is the side of a machine of Google Cloud: the metadata that makes it a
// host of a slice, what its agent reads of it, how machines of a group claim numbers,
// and the notices before a machine is taken away.
//
// It leaves out making machines. Start with [Bootstrap] and [Read].
package host
