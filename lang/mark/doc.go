// Package mark marks values that must not be shown or kept: sensitive ones, with the
// values that went into them, and ephemeral ones.
//
// Start with [MakeSensitive].
package mark
