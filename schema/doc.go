// Package schema is fray's vocabulary: addresses and names, and the typed specs of
// jobs, slices, reservations, namespaces and actor services with their canonical
// digests; statuses and kinds of errors; texts that may be secret; what a plan is made
// against ([Desired]), and one evaluated configuration ([Config]).
//
// It knows no files and evaluates nothing: package lang makes specs of HCL. It knows no
// state, no cloud and no clock, and nothing of TPU types, see package accelerators.
//
// Start with [Address] for names, [Job] and [SliceSpec] for specs, and [Text] for
// secrets.
package schema
