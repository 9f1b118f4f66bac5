// Package stack opens a stack: where it is kept, its workspace, its keys, the store
// that seals and encrypts, its providers, and the lease under which it changes. It reads
// no files of a configuration and makes no plan. Start with Open.
package stack
