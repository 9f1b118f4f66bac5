// Package unsaved finds whether what an action destroys the evidence of is saved, while newer
// states are not: steps go on deciding while a state is saved (package apply). An action
// concerns its slice, what is on the slice, and each job that has or had to do with these.
//
// Records are compared by their pointers, since they are never changed in place. Start with [Since].
package unsaved
