// Package clusterapi is the cluster API as a wire format: cluster.proto, which
// documents it, and the Go code generated from it. What it means is the
// controller's; the agent passes it on.
//
// Start with cluster.proto.
package clusterapi

//go:generate go -C .. run ./providers/gcp/tpuapi/internal/stubs clusterapi/cluster.proto clusterapi/hosts.proto
