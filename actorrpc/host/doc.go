// Package host serves actors: any Go value whose exported methods take what
// package codec carries. Its clients are package actorrpc, Python's fray.rpc and
// whatever speaks gRPC; wire/actor.proto has the protocol.
//
// A method is (ctx context.Context, args…) (result, error), where each of ctx,
// result and error may be missing. GetLesson is called "get_lesson", or by its Go name.
// A method's context has the caller's deadline, ends with Cancel and knows more by
// [FromContext]. Arguments belong to the method. A result must not be changed after
// it was returned: it is sent, and kept until its caller has it, without a copy.
//
// Calls of one actor begin in the order in which they came, one at a time unless
// [Options] allow more; methods with a concurrency group wait only for those
// of their group. A method that waits for its own actor with its own context gets an
// [rpcerror.SelfCallError]. A call that is sent again after its connection broke runs once:
// the [ledger] has what each caller does not have yet.
//
// What it leaves out: finding actors and calling them, which is package actorrpc.
//
// A connection is accepted and its protocol found out in listen.go; frames.go reads its calls,
// submit.go leads one to its mailbox (mailbox.go), from where call.go runs its method
// (method.go) and gives the answer back. The layers, each of which knows only those below it:
//
//	main.go, environment.go    a program that serves one actor
//	server.go, service.go, frames.go, call.go, actor.go, mailbox.go, ledger.go    calls and their answers
//	register.go, leaderless.go    the names of actors in the cluster
//	listener.go, listen.go, feed.go    the port: which protocol a connection speaks
//	method.go, metrics.go, watch.go, deferred.go, failure.go, config.go    what the others use
//
// Start with [Server].
package host
