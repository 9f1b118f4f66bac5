// Package session runs a command beside a task, on its host, with a terminal of its own
// where one is wanted. It finds the host and connects to its agent through the
// controller; it starts no tasks. Start with Run.
package session
