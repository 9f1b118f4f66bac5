// Package usage measures what the tasks of a host use: processors and memory of their
// processes, how busy TPU chips are as libtpu reports it, and the calls of their actors as
// those count them. It leaves out who is told.
//
// Start with [Sampler].
package usage
