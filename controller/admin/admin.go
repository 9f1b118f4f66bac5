// Package admin is the service Admin of the cluster API: users hand over approved
// configurations, record outputs, and pause or resume the loop.
//
// Start with [Server.Apply].
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Server is the service Admin.
type Server struct {
	clusterapi.UnimplementedAdminServer

	State access.State
	Store store.Store // of recorded configurations; nil: none is removed
	// Sealer has the stack's key; nil: sealed values are not checked.
	Sealer schema.Sealer
	// Recorded opens the recorded configuration of a name; nil: none can be followed.
	Recorded func(ctx context.Context, name string) (func(doc *state.Document) (*schema.Desired, error), error)
	Log      *slog.Logger
	// Hold returns why a plan, which makes the second document of the first, is not to be
	// accepted of the caller who asks for it; nil: every plan is.
	Hold Hold
	// Version is that of fray, and Metrics are what the process counts, as text; nil: nothing.
	Version string
	Metrics func() (string, error)
}

// Hold returns why a plan is not to be accepted.
type Hold func(doc, next *state.Document, p *plan.Plan, asked apply.Request) error

var _ clusterapi.AdminServer = (*Server)(nil)

// Apply accepts what a user approved, if it still means the same changes.
func (a *Server) Apply(ctx context.Context, req *clusterapi.ApplyRequest) (*clusterapi.ApplyResponse, error) {
	if len(req.GetOutputs()) > 0 {
		return a.recordOutputs(ctx, req)
	}
	in, err := acceptance(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := a.sealedNow(in.Desired); err != nil {
		return nil, err
	}
	if err := a.canOpen(ctx, in.Recorded); err != nil {
		return nil, err
	}
	by := caller.Of(ctx).User
	var revision uint64
	err = a.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		if doc.Paused != nil {
			return nil, status.Error(codes.FailedPrecondition, pause.Text(doc.Paused))
		}
		doc, err := in.amend(doc, by, now)
		if err != nil {
			return nil, err
		}
		request := in.Request
		request.By = by
		next := apply.Accept(doc, request)
		p, digest, err := reconcile.Proposed(&next.Desired, next, now)
		switch {
		case err != nil:
			return nil, err
		case len(p.Blocked) > 0:
			return nil, status.Error(codes.FailedPrecondition, p.Blocked[0].Detail)
		case digest != req.GetPlanDigest():
			return nil, status.Error(codes.Aborted, "the stack changed while you were deciding, and the plan with it; nothing was done: run it again")
		}
		if a.Hold != nil {
			if err := a.Hold(doc, next, p, request); err != nil {
				return nil, status.Error(codes.FailedPrecondition, err.Error())
			}
		}
		if in.place != "" {
			next.LocalPlace = in.place
		}
		revision = next.Revision
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	a.sweep(ctx)
	return &clusterapi.ApplyResponse{Revision: revision}, nil
}

// sealedNow rejects what is sealed with a key that the stack has no more: jobs would
// restart for it, and their hosts could not open it.
func (a *Server) sealedNow(desired schema.Desired) error {
	if a.Sealer == nil {
		return nil
	}
	if err := desired.CheckSealed(a.Sealer); err != nil {
		return status.Error(codes.Aborted, "the stack's key has changed since the plan was made (fray state rekey); nothing was done: run it again: "+err.Error())
	}
	return nil
}

// canOpen rejects a recorded configuration whose values this controller cannot follow.
func (a *Server) canOpen(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if a.Recorded == nil {
		return status.Error(codes.Unimplemented, "this controller follows no values that become known")
	}
	if _, err := a.Recorded(ctx, name); err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	return nil
}

// sweep removes recorded configurations that the state no longer names. A later
// sweep removes what this one could not.
func (a *Server) sweep(ctx context.Context) {
	if a.Store == nil {
		return
	}
	if err := store.SweepConfigurations(ctx, a.Store, a.State.View().Doc.Recorded); err != nil {
		a.Log.Warn(err.Error())
	}
}

// do has the loop change the state. An observer answers as a controller that cannot
// be reached: the client then takes the lease.
func (a *Server) do(ctx context.Context, change access.Change) error {
	err := a.State.Do(ctx, change)
	if errors.Is(err, access.ErrObserves) || errors.Is(err, access.ErrNotLeading) {
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}

// recordOutputs takes in what the accepted configuration's outputs have become.
func (a *Server) recordOutputs(ctx context.Context, req *clusterapi.ApplyRequest) (*clusterapi.ApplyResponse, error) {
	var outputs map[string]schema.Output
	if err := json.Unmarshal(req.GetOutputs(), &outputs); err != nil {
		return nil, status.Error(codes.InvalidArgument, "outputs: "+err.Error())
	}
	err := a.do(ctx, func(doc *state.Document, _ time.Time) (*state.Document, error) {
		if doc.Revision != req.GetRevision() {
			return doc, nil // another configuration was accepted since, with outputs of its own
		}
		next := doc.Clone()
		next.Outputs = outputs
		return next, nil
	})
	return &clusterapi.ApplyResponse{Revision: req.GetRevision()}, err
}

// accepted is an ApplyRequest in the types of package apply.
type accepted struct {
	apply.Request

	place      string
	amendments *Amendments // nil: none
}

func acceptance(req *clusterapi.ApplyRequest) (accepted, error) {
	in := accepted{place: req.GetLocalPlace()}
	if err := json.Unmarshal(req.GetDesired(), &in.Desired); err != nil {
		return in, fmt.Errorf("desired: %w", err)
	}
	for _, list := range []struct {
		name string
		from []string
		to   *[]schema.Address
	}{{"replace", req.GetReplace(), &in.Replace}, {"stop", req.GetStop(), &in.Stop}, {"unlaunch", req.GetUnlaunch(), &in.Unlaunch}} {
		for i, text := range list.from {
			addr, err := schema.ParseAddress(text)
			if err != nil {
				return in, fmt.Errorf("%s[%d]: %w", list.name, i, err)
			}
			*list.to = append(*list.to, addr)
		}
	}
	in.UnlaunchAll = req.GetUnlaunchAll()
	in.Recorded, in.KeepRecorded = req.GetRecorded(), req.GetKeepRecorded()
	if len(req.GetAmendments()) > 0 {
		if err := json.Unmarshal(req.GetAmendments(), &in.amendments); err != nil {
			return in, fmt.Errorf("amendments: %w", err)
		}
	}
	if len(req.GetExplanation()) > 0 {
		if err := json.Unmarshal(req.GetExplanation(), &in.Explanation); err != nil {
			return in, fmt.Errorf("explanation: %w", err)
		}
	}
	return in, nil
}

// Pause has the loop observe and change nothing. A stack that is paused stays so.
func (a *Server) Pause(ctx context.Context, req *clusterapi.PauseRequest) (*clusterapi.PauseResponse, error) {
	err := a.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		return pause.Set(doc, state.Pause{At: now, By: caller.Of(ctx).User, Reason: req.GetReason()}), nil
	})
	return &clusterapi.PauseResponse{}, err
}

// Resume lets the loop act again.
func (a *Server) Resume(ctx context.Context, _ *clusterapi.ResumeRequest) (*clusterapi.ResumeResponse, error) {
	err := a.do(ctx, func(doc *state.Document, _ time.Time) (*state.Document, error) { return pause.Clear(doc), nil })
	return &clusterapi.ResumeResponse{}, err
}
