// Package syntax checks source before the HCL library parses it: the parser recurses,
// and a stack that overflows cannot be reported.
//
// Start with [CheckConfig].
package syntax
