// Package dial connects the processes of a stack: to the controller that
// leads, and to agents. Both serve TLS under a certificate that they made
// themselves; a client knows its fingerprint from the store (the lease,
// a host's report) and accepts that one and no other. So the store, and the right to
// write to it, is the root of trust, and no clock matters.
//
// What is called and what is allowed is not known here. Start with [Follow] and
// [Open]; servers start with [NewCertificate] and [ServerCredentials].
package dial
