// Package notices keeps the ledger of notices in the store, and sends what is in it to the
// receivers of notifications: webhooks and commands. Each notice reaches each receiver at
// least once, with the same id and content each time, whichever process leads; a receiver that
// is slow or dead holds up nothing but its own notices.
//
// What is to be told is decided by plan/notice. Start with [Keeper], then deliver.go.
package notices
