// Package decode makes specs of the blocks of an evaluated configuration: jobs,
// services, reservations, namespaces, providers, settings, outputs and conditions.
//
// It decides which values a block may have and fills in defaults. Package eval evaluates
// expressions for it, and package lint warns of what is unwise but legal.
//
// Start with [Config], [Decoder] for the blocks of one module instance, and [JobDecoder]
// for the parts of a job.
package decode
