// Package actorrpc calls actors: stateful objects that are reached by name,
// wherever they run and whatever language they are in. Package host has the
// other side, package codec what arguments and results may be.
//
//	client, err := actorrpc.FromEnvironment(ctx)
//	h, err := client.Lookup(ctx, "counter")
//	n, err := actorrpc.Call[int](ctx, h, "increment", 2)
//	f := actorrpc.Go[int](ctx, h, "increment", 3)
//	for n, err := range actorrpc.Stream[int](ctx, h, "count", 10) { ... }
//
// A call runs at most once unless its caller asks for more: what surely did not
// run is sent again by itself, what may have run is reported as such ([Error.Ran])
// or, where the caller ([RPCOptions]) or the method's declaration allows that, sent again.
//
// Its layers, each of which knows only those below it:
//
//	client.go, handle.go, lookup.go, invoke.go, future.go, pool.go    the public API
//	actor.go, call.go, backlog.go, seek.go, retry.go, verdict.go    one actor: the order of its calls, where it is, what is sent again
//	transports.go    one transport for each address
//	peer.go, grpc.go    a transport: by frames or by gRPC
//	queue.go, window.go    the calls of one peer, in order, under one lock
//	dialer.go, connection.go, question.go    connects; one connection
//	stream.go, inbox.go    a call that is answered by a stream: the loop, and what has arrived for it
//	delivery.go, shared.go, config.go   what the others pass on
//
// Below are packages resolver (where actors are), rpcerror, codec and wire. A call ([Call], invoke.go) goes from
// its [Handle] to the one actor of that name, which finds where it is and gives the call to the transport there.
// When a connection breaks, the calls without an answer stay in the peer's queue until it is known which process
// answers at the address now. Start with invoke.go.
//
// What it leaves out: starting actors.
package actorrpc
