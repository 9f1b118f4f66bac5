// Package policy has what policies see of a plan, and decides what their findings mean for
// it: which policies deny, which only warn, and which are overridden by whom.
//
// It evaluates no expressions and reads no files.
//
// Start with [InputOf] and [Judge].
package policy
