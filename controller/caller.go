package controller

import "context"

// callerKind is a closed set of who calls the cluster API.
type callerKind string

// The kinds of callers, as the subject of their token names them.
const (
	callerJob        callerKind = "job"
	callerUser       callerKind = "user"
	callerHost       callerKind = "host"
	callerController callerKind = "controller"
)

// caller is who makes a call, as its token says. It was checked before a
// service sees it.
type caller struct {
	Stack string
	Kind  callerKind
	// Namespace, JobID and Attempt are a job's: the attempt runs.
	Namespace string
	JobID     string
	Attempt   int
	Slice     string // of the host that vouches for a job
	Host      int
	User      string // a user's name; of a job, whose share it uses
}

type callerKey struct{}

// withCaller is what the server gives its services.
func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf is who makes the call, the zero caller where nobody checked: it may do nothing.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}
