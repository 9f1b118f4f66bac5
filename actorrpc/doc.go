// Package actorrpc calls actors: stateful objects that are reached by name,
// wherever they run and whatever language they are in. Package host has the
// other side, package codec what arguments and results may be.
//
//	client, err := actorrpc.FromEnvironment(ctx)
//	h, err := client.Lookup(ctx, "counter")
//	n, err := actorrpc.Call[int](ctx, h, "increment", 2)
//	f := actorrpc.Go[int](ctx, h, "increment", 3)
//
// A call runs at most once unless its caller asks for more: what surely did not
// run is sent again by itself, what may have run is reported as such ([Error.Ran])
// or, with leave ([RPCOptions], or the method's own word), sent again.
//
// A call goes from its [Handle] to the one actor of that name (actor.go), which
// finds where it is by a [Resolver] (seek.go) and gives it to the server there
// (submit.go). A server has one connection (link.go); when that breaks, the calls
// without an answer wait in its window until it is known who answers there now
// (server.go). Other servers are reached by gRPC (general.go).
//
// What it leaves out: starting actors, and streams.
package actorrpc
