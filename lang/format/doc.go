// Package format formats configurations as the HCL library does, and writes old forms
// in the present way.
//
// Start with [Source].
package format
