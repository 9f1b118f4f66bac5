// Package savedplan keeps a plan in a file, with the inputs that made it, sealed where
// the state is encrypted, and checks later whether it still holds. It plans nothing itself
// and carries nothing out. Start with Save and Read.
package savedplan
