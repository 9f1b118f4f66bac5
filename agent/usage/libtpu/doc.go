// Package libtpu is the service by which libtpu shows how busy the chips of a machine are:
// the part of it that fray calls, and the Go code generated from it.
//
// Start with libtpu.proto.
package libtpu

//go:generate go -C ../../.. run ./providers/gcp/tpuapi/internal/stubs agent/usage/libtpu/libtpu.proto
