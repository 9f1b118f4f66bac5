// Package proposal makes the plan of a command: what is asked for, what moved, removed
// and import blocks do to the state first, what the providers list, and why each address
// changes. It takes no lease and carries nothing out; only an import, which a command
// carries out under its lease, marks what it takes over. Start with Change and Preview.
package proposal
