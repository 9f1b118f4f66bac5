// Package clienttest has what tests of clients need: faults of a service and of the way
// to it, and credentials of an account that does not exist.
//
// It leaves out a service; package buckettest has one. Start with [Fault].
package clienttest
