// Package tpuapi is the client and the server interface of the Cloud TPU API
// v2alpha1, generated from tpu.proto: what of the published API fray, or the
// emulator that stands in for it, speaks. It holds no code of its own; the
// connection, and the operations that its calls answer with, are other
// packages'. Start with TpuClient.
package tpuapi

//go:generate go -C ../../.. run ./providers/gcp/tpuapi/internal/stubs providers/gcp/tpuapi/tpu.proto
