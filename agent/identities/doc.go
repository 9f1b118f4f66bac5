// Package identities keeps the files by which the tasks of a host and other members of
// their namespace know each other: the host's key, its certificate and the authorities
// of now.
//
// It leaves out who is certified, and what actors do with the files. Start with [Keeper].
package identities
