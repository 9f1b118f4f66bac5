// Package caller has who makes a call of the cluster API, as its token says. The
// API's server puts it into the context of a call once the token is verified;
// services read it with [Of] or [Known]. What a caller may do is not decided here.
package caller

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind is a closed set of who calls the cluster API.
type Kind string

// The kinds of callers, as the subject of their token names them.
const (
	Job        Kind = "job"
	User       Kind = "user"
	Host       Kind = "host"
	Controller Kind = "controller"
)

// Caller is who makes a call, as its token says. The token was verified before a
// service sees it.
type Caller struct {
	Stack string
	Kind  Kind
	// Namespace, JobID and Attempt are a job's: the attempt runs.
	Namespace string
	JobID     string
	Attempt   int
	Slice     string // of the host that vouches for a job
	Host      int
	User      string // a user's name; of a job, whose share it uses
}

// String is the caller for a log.
func (c Caller) String() string {
	switch c.Kind {
	case Job:
		return fmt.Sprintf("job %s attempt %d in %s", c.JobID, c.Attempt, c.Namespace)
	case User:
		return "user " + c.User
	case Host, Controller:
		return string(c.Kind)
	}
	return "unauthenticated"
}

type key struct{}

// With is the context that the server gives its services.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// Of is who makes the call; the zero Caller, which may do nothing, where no token
// was verified.
func Of(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	return c
}

// Known rejects calls without a verified token.
func Known(ctx context.Context) (Caller, error) {
	who := Of(ctx)
	if who.Kind == "" {
		return who, status.Error(codes.Unauthenticated, "the call carries no token")
	}
	return who, nil
}
