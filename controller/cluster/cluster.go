// Package cluster is the service Cluster of the cluster API: the life of jobs and
// reservations, their logs, uploads, and commands on their hosts. It reads views and
// hands changes to the loop; it keeps no state of its own. How requests become
// changes is package admission's part, logs are package joblogs'.
//
// Start with [Server]; each file has the methods of one subject.
package cluster

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/joblogs"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/controller/sessions"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Config is what the Cluster service works with.
type Config struct {
	State access.State
	Store store.Store // where logs and uploads are
	// Hosts connects to the agent that serves a report's API; nil: logs come
	// from the store, and nothing is run on hosts. Closing it is the caller's.
	Hosts func(ctx context.Context, report *state.HostReport) (joblogs.HostConn, error)
	Log   *slog.Logger
	// Sealer has the stack's key.
	Sealer   schema.Sealer
	Sessions *sessions.Sessions // of clients; nil: new ones
}

// Server is the Cluster service: the life of jobs and reservations. It
// reads views and hands changes to the loop; it keeps no state of its own.
type Server struct {
	clusterapi.UnimplementedClusterServer

	Config

	jobs jobs.Cache
}

var _ clusterapi.ClusterServer = (*Server)(nil)

// New makes the service.
func New(cfg Config) *Server {
	if cfg.Sessions == nil {
		cfg.Sessions = sessions.New()
	}
	return &Server{Config: cfg}
}

// do has the loop change the state. Its error is a status.
func (c *Server) do(ctx context.Context, change access.Change) error {
	err := c.State.Do(ctx, change)
	switch _, isStatus := status.FromError(err); {
	case err == nil, isStatus:
		return err
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	if _, taken := errors.AsType[*launch.NameTakenError](err); taken {
		return err // the caller waits
	}
	return status.Errorf(codes.Unavailable, "%v", err)
}
