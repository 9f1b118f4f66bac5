// Package profiling carries out fray profile: it has the host of a task measure it, writes the profile into
// files, keeps it in the store for the controller's page and prints which functions it is about.
//
// It leaves out measuring, which agent/profiler does, and the way to the host, which session finds. Start with [Run].
package profiling
