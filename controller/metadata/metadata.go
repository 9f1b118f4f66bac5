// Package metadata is the service Metadata of the cluster API: the endpoints of actors
// by name, as long as this controller leads. A registration is answered once it is
// saved, and ends with its task. How names map to endpoints is package registry's
// part.
//
// Start with [Server], then directory.go, the registry of one time of leading.
package metadata

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/registry"
	"github.com/fray-ml/fray/state/store"
)

// Server is the service Metadata: the names of actors. What it knows
// belongs to one time of leading, see lead.
type Server struct {
	clusterapi.UnimplementedMetadataServer

	store store.Store
	log   *slog.Logger
	now   func() time.Time

	directory atomic.Pointer[directory] // nil while it does not lead
}

var _ clusterapi.MetadataServer = (*Server)(nil)

// New makes a service that answers once it leads.
func New(s store.Store, log *slog.Logger, now func() time.Time) *Server {
	return &Server{store: s, log: log, now: now}
}

// current is the directory of this time of leading.
func (m *Server) current() (*directory, error) {
	if d := m.directory.Load(); d != nil {
		return d, nil
	}
	return nil, status.Error(codes.Unavailable, "the controller has not read the endpoints yet")
}

// Endpoints is how many endpoints are registered.
func (m *Server) Endpoints() int {
	d := m.directory.Load()
	if d == nil {
		return 0
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.reg.Size()
}

// Register makes an endpoint known. It answers once that is saved; others may
// see it a moment before.
func (m *Server) Register(ctx context.Context, r *clusterapi.RegisterRequest) (*clusterapi.RegisterResponse, error) {
	d, err := m.current()
	if err != nil {
		return nil, err
	}
	if err := checkRegister(r); err != nil {
		return nil, err
	}
	who := caller.Of(ctx)
	in := registry.Endpoint{
		ID: r.GetActorId(), Name: r.GetName(), Address: r.GetAddress(), JobID: r.GetJobId(), Task: int(r.GetTask()), Metadata: r.GetMetadata(),
		Unique: r.GetUnique(), TTL: r.GetTtl().AsDuration(), Request: r.GetRequestId(),
	}
	if who.Kind == caller.Job {
		in.JobID, in.Attempt = who.JobID, who.Attempt
	}
	id, version, err := d.register(in)
	if err != nil {
		return nil, err
	}
	if err := d.waitSaved(ctx, version); err != nil {
		return nil, err
	}
	return &clusterapi.RegisterResponse{ActorId: id}, nil
}

// Unregister forgets an endpoint; it answers once that is saved.
func (m *Server) Unregister(ctx context.Context, r *clusterapi.UnregisterRequest) (*clusterapi.UnregisterResponse, error) {
	d, err := m.current()
	if err != nil {
		return nil, err
	}
	version, err := d.unregister(r.GetActorId(), caller.Of(ctx).JobID)
	if errors.Is(err, registry.ErrNotOwn) {
		return nil, status.Error(codes.PermissionDenied, "actor_id: "+err.Error())
	}
	if err != nil {
		return nil, err
	}
	return &clusterapi.UnregisterResponse{}, d.waitSaved(ctx, version)
}

// Lookup finds the newest endpoint of a name.
func (m *Server) Lookup(ctx context.Context, r *clusterapi.LookupRequest) (*clusterapi.ActorEndpoint, error) {
	d, namespace, err := m.read(ctx, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	found := d.reg.Named(namespace, r.GetName())
	if r.GetJobId() != "" {
		found = slices.DeleteFunc(slices.Clone(found), func(e *registry.Endpoint) bool { return e.JobID != r.GetJobId() })
	}
	if len(found) > 0 {
		return found[len(found)-1].Wire, nil
	}
	is := d.fate(namespace, r.GetName(), r.GetJobId())
	return nil, actorMissing(&clusterapi.ActorNotFound{
		Name: r.GetName(), Namespace: namespace, Near: d.reg.Suggestions(namespace, r.GetName()), Death: is.death, Undecided: is.undecided,
	})
}

// actorMissing is the status of a name that no endpoint has: its detail is for programs,
// its message for people.
func actorMissing(detail *clusterapi.ActorNotFound) error {
	text := fmt.Sprintf("no actor %q is registered in namespace %q", detail.GetName(), detail.GetNamespace())
	if detail.GetDeath() != "" {
		text += ": " + detail.GetDeath()
	}
	if near := detail.GetNear(); len(near) > 0 {
		text += "; near it are " + strings.Join(near, ", ")
	}
	st := status.New(codes.NotFound, text)
	if detailed, err := st.WithDetails(detail); err == nil {
		st = detailed
	}
	return st.Err()
}

// LookupAll finds all endpoints of a name, the oldest first. None is no error.
func (m *Server) LookupAll(ctx context.Context, r *clusterapi.LookupRequest) (*clusterapi.ListActorsResponse, error) {
	d, namespace, err := m.read(ctx, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return listed(d.reg.Named(namespace, r.GetName())), nil
}

// ListActors lists the endpoints whose names begin with a prefix.
func (m *Server) ListActors(ctx context.Context, r *clusterapi.ListActorsRequest) (*clusterapi.ListActorsResponse, error) {
	d, namespace, err := m.read(ctx, r.GetNamespace())
	if err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return listed(d.reg.List(namespace, r.GetPrefix())), nil
}

func listed(endpoints []*registry.Endpoint) *clusterapi.ListActorsResponse {
	out := &clusterapi.ListActorsResponse{Actors: make([]*clusterapi.ActorEndpoint, len(endpoints))}
	for i, e := range endpoints {
		out.Actors[i] = e.Wire
	}
	return out
}

// Watch sends what there is and then what changes. A client that reads slowly gets
// everything anew, and does not block other clients.
func (m *Server) Watch(r *clusterapi.WatchRequest, stream grpc.ServerStreamingServer[clusterapi.WatchResponse]) error {
	ctx := stream.Context()
	d, namespace, err := m.read(ctx, r.GetNamespace())
	if err != nil {
		return err
	}
	if r.GetName() != "" && r.GetPrefix() != "" {
		return status.Error(codes.InvalidArgument, "prefix: give a name or a prefix, not both")
	}
	w := registry.NewWatcher(namespace, r.GetName(), r.GetPrefix(), r.GetJobId())
	if err := d.watch(w); err != nil {
		return err
	}
	defer d.unwatch(w)
	w.WakeUp()
	for {
		select {
		case <-w.Wake:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-d.ctx.Done():
			return status.Error(codes.Unavailable, access.ErrNotLeading.Error())
		}
		out, err := d.take(w)
		if err != nil {
			return err
		}
		if out == nil {
			continue
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// read is the directory and the namespace that a caller means.
func (m *Server) read(ctx context.Context, asked string) (*directory, string, error) {
	d, err := m.current()
	if err != nil {
		return nil, "", err
	}
	if asked == "" {
		asked = caller.Of(ctx).Namespace
	}
	if asked == "" {
		return nil, "", badrequest.Fields(map[string]string{"namespace": "say which: a user belongs to none"})
	}
	return d, asked, nil
}

// newActorID is unique.
func newActorID() string { return actorPrefix + strings.ToLower(rand.Text()) }
