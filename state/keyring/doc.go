// Package keyring keeps the key of a stack and encrypts documents with it.
//
// A stack has one random key. It seals the sensitive values in the state
// (state.NewKey) and, where encryption is declared, whole documents: the state
// and plan files ([Box]). The key itself is an object beside the state,
// "key.json" ([Keyring]), in the form that the stack's [Policy] asks for:
//
//	plain  as it is; who may read the store may read the key
//	age    wrapped for age recipients and SSH public keys; the payload is an age file
//	kms    wrapped by a key that never leaves its service, or by a file ([KMS])
//
// It does not read or write the store, ask for passphrases, or know a cloud: the
// services behind a key's name are handed in ([Openers]). Changing the policy
// wraps the same key anew; it makes no other one, so who could open the key
// before can still open what was sealed with it.
//
// Start with [New] and [Keyring.Open].
package keyring
