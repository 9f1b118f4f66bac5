// Package runclient is this machine as a client of a stack's cluster: it runs a program
// with the cluster's address and identity, lists actors and calls them. It hosts no
// actors. Start with RunProgram and CallActor.
package runclient
