// Package container runs tasks in containers by the client of docker or podman, which
// stays in the foreground: its output, its end and the signals that it gets are the
// task's. What a killed client leaves behind is found by the container's name.
//
// It leaves out starting the client, which a shim does. Start with [Task], then [Puller].
package container
