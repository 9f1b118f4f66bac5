package controller

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fray-ml/fray/controller/joblogs"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// clusterConfig is what the Cluster service works with.
type clusterConfig struct {
	State access.State
	Store store.Store // where logs and uploads are
	// Hosts connects to the agent that serves a report's API; nil: logs come
	// from the store, and nothing is run on hosts. Closing it is the caller's.
	Hosts func(ctx context.Context, report *state.HostReport) (joblogs.HostConn, error)
	Log   *slog.Logger
	// Sealer has the stack's key.
	Sealer schema.Sealer
}

// clusterServer is the Cluster service: the life of jobs and reservations. It
// reads views and hands changes to the loop; it keeps no state of its own.
type clusterServer struct {
	clusterapi.UnimplementedClusterServer

	clusterConfig

	jobs jobs.Cache
}

var _ clusterapi.ClusterServer = (*clusterServer)(nil)

func newCluster(cfg clusterConfig) *clusterServer { return &clusterServer{clusterConfig: cfg} }

// do has the loop change the state. Its error is a status.
func (c *clusterServer) do(ctx context.Context, change access.Change) error {
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
