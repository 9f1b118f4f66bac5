// Package notice has the notices of preemption and maintenance: where they come from
// ([Source]), and a value that others wait for ([Status]).
//
// It leaves out what an agent does about them.
package notice
