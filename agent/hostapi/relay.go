package hostapi

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// relay speaks for other hosts of the slice, once the host has what it does so by.
type relay struct {
	clusterapi.UnimplementedHostsServer
	by atomic.Pointer[clusterapi.HostsServer] // nil: it does not
}

var _ clusterapi.HostsServer = (*relay)(nil)

// Connect serves a host of the slice.
func (r *relay) Connect(stream clusterapi.Hosts_ConnectServer) error {
	by := r.by.Load()
	if by == nil {
		return status.Error(codes.FailedPrecondition, "this host does not relay")
	}
	return (*by).Connect(stream)
}

// Relay has other hosts of the slice speak through this one.
func (a *API) Relay(by clusterapi.HostsServer) { a.service.relay.by.Store(&by) }
