// Package watch is a controller's process: it locates or begins a stack, follows the
// configuration in a directory or in git, and runs the controller under the lease. What
// a controller decides is in controller. Start with Run.
package watch
