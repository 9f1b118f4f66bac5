// Package computeapi is the part of Compute Engine's API that fray, and the emulator
// that stands in for the service, speak: its resources as plain structs, and a client of
// its REST methods. The structs have the names of the published API, which a test
// compares with Google's own client.
//
// It is here because Google's clients cost each process of fray several milliseconds
// before main begins. It leaves out retries, waiting for operations and what errors
// mean; packages gce, client and apierror have these. Start with [Client].
package computeapi
