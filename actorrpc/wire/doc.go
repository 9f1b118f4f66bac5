// Package wire is the protocol that actors call each other by: actor.proto,
// which documents it, the Go code generated from it, and connections that carry
// its frames. What a call means is not known here.
//
// Start with actor.proto, then [Conn].
package wire

//go:generate go -C ../.. run ./providers/gcp/tpuapi/internal/stubs actorrpc/wire/actor.proto
