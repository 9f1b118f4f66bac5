// Package environment makes the environment variables of a task: those of fray, of
// libtpu and JAX, and of the job. docs/environment.md lists them.
//
// It leaves out how they reach the task. Start with [Of].
package environment
