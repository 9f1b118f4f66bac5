// Package tpu serves the Cloud TPU API v2alpha1 over gRPC on top of the model in
// package cloud: nodes, queued resources, the catalogs of types and runtime
// versions, guest attributes, and with them operations and locations. Errors have
// the codes, texts and details of the service.
//
// It leaves out what fray and its tests do not call, and decides nothing by itself:
// when a node comes up, fails or is preempted is the model's.
//
// Start with [New] and the type service. Layers, each of which knows those above it
// only: names (names and pages of requests), operations and locations, service.
package tpu
