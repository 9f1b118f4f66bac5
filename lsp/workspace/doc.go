// Package workspace finds what is wrong with the files that an editor has open: the checks
// of fray validate over buffers and the files beside them. In large configurations it checks
// what a change affects at once, and everything after a pause.
//
// It knows no protocol.
//
// Start with [Workspace]; [check] is one run of the checks.
package workspace
