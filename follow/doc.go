// Package follow prints the logs of jobs from the store, and of running tasks directly
// from their hosts as they are written. It ships no logs: agents do. Start with Print.
package follow
