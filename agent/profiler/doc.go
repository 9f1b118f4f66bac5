// Package profiler measures the processes of a task on their host: Python by py-spy, Go by the
// runtime's own profiles where the program serves them, and of every process where its threads are.
//
// It runs in a process of its own beside the task, as a command of fray exec does, and leaves out
// who may ask for it. Start with [Run].
package profiler
