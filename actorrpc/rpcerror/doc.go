// Package rpcerror has the errors of calls: a closed set of codes, whether the method may have
// run, and the error's form on the wire. It leaves out which error follows from what, which is for
// packages actorrpc (the caller) and actorrpc/host (the server). Start with [Error].
package rpcerror
