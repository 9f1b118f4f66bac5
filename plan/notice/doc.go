// Package notice decides what the receivers of notifications are to be told: from the state,
// a plan and what was told before to notices. It is pure: a ledger goes in, and the next one
// comes out. Keeping the ledger and sending notices is the package notices.
//
// A notice is decided by what is the case and is not told yet, rather than by what has just
// changed: a controller that dies between two steps leaves nothing out. Each notice has an
// id that no other has, and its content never changes, so that who receives one twice can
// tell. Start with [Decide].
package notice
