// Package decode makes specs of the blocks of an evaluated configuration: jobs,
// services, reservations, namespaces, providers, settings, outputs and conditions.
//
// It decides which values a block may have and fills in defaults. Package eval evaluates
// expressions for it, and package lint warns of what is unwise but legal.
//
// Start with [Config], and job.go for the parts of a job.
package decode
