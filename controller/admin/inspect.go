package admin

import (
	"context"
	"runtime"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// maxStacks bounds the stacks of goroutines, in bytes. A message of the cluster API holds them.
const maxStacks = 2 << 20

// Inspect describes this process. It takes no lock of the loop, so that a loop which is stuck can be looked into.
func (a *Server) Inspect(context.Context, *clusterapi.InspectRequest) (*clusterapi.InspectResponse, error) {
	out := &clusterapi.InspectResponse{Version: a.Version}
	buffer := make([]byte, maxStacks)
	out.Goroutines = string(buffer[:runtime.Stack(buffer, true)])
	if a.Metrics != nil {
		var err error
		if out.Metrics, err = a.Metrics(); err != nil {
			return nil, status.Errorf(codes.Unavailable, "gather the metrics: %v", err)
		}
	}
	return out, nil
}
