// Package lint warns of what is legal and unwise in a configuration that is right. The
// warnings are a closed list (docs/errors.md), each with a way to silence it.
//
// It reports no errors.
//
// Start with [Check].
package lint
