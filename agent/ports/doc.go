// Package ports picks port numbers for tasks, and reserves those of a gang's
// coordinator while no task runs.
//
// It leaves out how the numbers are published. Start with [Pick].
package ports
