// Package emulator is Google Cloud in one process and on one port, for tests and
// rehearsals. It composes the model in package cloud, the APIs on top of it (the
// Cloud TPU API over gRPC in package tpu, Compute Engine over REST in package
// compute), buckets and machines. Real clients talk to it over real connections; a
// call that the services reject is rejected with the services' codes and texts.
//
// It checks no credentials, except where a scenario states that they are wrong. Calls
// of the published APIs that fray and its tests do not make are left out.
//
// Start with [Open], which runs machines too, or with [New] and [Emulator.Serve];
// or mount [Emulator.Handler] in a server of your own. Below /emulator/ it answers
// with the state of the world and takes faults to inject; [Emulator.World] is the
// same for Go.
package emulator
