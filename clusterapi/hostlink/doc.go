// Package hostlink is the hosts' half of the service Hosts of clusterapi: reports of hosts
// as messages, whole or as what changed ([Whole], [Delta], [Merge]), and one stream to the
// controller that leads for all hosts of a process ([Client]), through another host of the slice where
// one relays ([Relay]).
//
// It leaves out what is reported and how the store is used beside the stream. Start with
// [Client].
package hostlink
