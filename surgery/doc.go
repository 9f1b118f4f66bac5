// Package surgery changes a state by hand, under the lease and without acting on the
// world: edits, earlier versions, a document from a file, a state rebuilt from what
// runs, a new key, a workspace that goes, a lease that is broken. What an edit means is
// decided in plan/amend. Start with EditState.
package surgery
