// Package mark is how fray knows its own resources on Google Cloud: labels that name
// the stack and the slice, and metadata with the spec that was asked for.
//
// It leaves out the services that keep them. Start with [Marks].
package mark
