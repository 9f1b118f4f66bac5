// Package kms wraps the stack's key with a key of Cloud KMS. A [Key] implements
// keyring.KMS.
//
// It leaves out what is wrapped, and makes no key. Start with [Open].
package kms
