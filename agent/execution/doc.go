// Package execution runs one command beside a task, on a terminal or on pipes, for the
// call that asked for it. What the command starts ends with the call.
//
// It leaves out which command that is and who may run it. Start with [Run].
package execution
