// Package gcetest has slices of Compute Engine for tests, and operations that failed.
//
// It leaves out a service: package emulator has one. Start with [Spec].
package gcetest
