// Package tpu makes slices of the Cloud TPU API: nodes, and queued resources with a node.
//
// It decides nothing and keeps nothing. It leaves out the limits on creations and what is
// asked for again, which the provider has. Start with [Engine], then create.go, list.go
// and state.go.
package tpu
