// Package task is the life of one start of one task, from its preparation until
// nothing of it is left and all its output is shipped. The intent is written before
// anything is started, so that a task is started at most once.
//
// It decides nothing: which task runs and whether it is tried again is others'. Layers,
// each of which uses those after it:
//
//	task.go         a life: prepared, supervised, finished
//	prepare.go      what the command needs: project, environment, container, identity
//	watch.go        supervision: from launching the shim until nothing is left
//	checks.go       health checks during that time
//	remains.go      the report that is kept, and output that is shipped late
//
// Start with [New] and the method live.
package task
