// Package outcome decides what became of a task: from its exit record, the cause for
// which it was stopped, and what it recorded about its own end. It is without effects but
// for [ReadTermination].
//
// It leaves out whether the task is tried again. Start with [Of].
package outcome
