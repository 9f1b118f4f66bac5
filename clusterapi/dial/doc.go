// Package dial connects the processes of a stack: to whichever controller
// leads, and to agents. Both serve TLS under a certificate that they made
// themselves; whoever connects knows its fingerprint from the store (the lease,
// a host's report) and accepts that one and no other. So the store, and who may
// write to it, is the root of trust, and no clock matters.
//
// What is called and what is allowed is not known here. Start with [Follow] and
// [Open]; servers start with [NewCertificate] and [ServerCredentials].
package dial
