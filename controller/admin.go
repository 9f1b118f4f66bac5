package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// adminServer is what users do with the loop itself.
type adminServer struct {
	clusterapi.UnimplementedAdminServer

	desk desk
	cfg  *Config // nil: no configuration is recorded
}

var _ clusterapi.AdminServer = (*adminServer)(nil)

// Apply accepts what a user approved, if it still means the same changes.
func (a *adminServer) Apply(ctx context.Context, req *clusterapi.ApplyRequest) (*clusterapi.ApplyResponse, error) {
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
	by := callerOf(ctx).User
	var revision uint64
	err = a.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		if doc.Paused != nil {
			return nil, status.Error(codes.FailedPrecondition, PausedText(doc.Paused))
		}
		doc, err := in.amend(doc, by, now)
		if err != nil {
			return nil, err
		}
		next := apply.Accept(doc, in.Request)
		p, digest, err := reconcile.Proposed(&next.Desired, next, now)
		switch {
		case err != nil:
			return nil, err
		case len(p.Blocked) > 0:
			return nil, status.Error(codes.FailedPrecondition, p.Blocked[0].Detail)
		case digest != req.GetPlanDigest():
			return nil, status.Error(codes.Aborted, "the stack changed while you were deciding, and the plan with it; nothing was done: run it again")
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
func (a *adminServer) sealedNow(desired schema.Desired) error {
	if a.cfg == nil || a.cfg.Service.Sealer == nil {
		return nil
	}
	if err := desired.CheckSealed(a.cfg.Service.Sealer); err != nil {
		return status.Error(codes.Aborted, "the stack's key has changed since the plan was made (fray state rekey); nothing was done: run it again: "+err.Error())
	}
	return nil
}

// canOpen refuses a recorded configuration whose values nobody here could follow.
func (a *adminServer) canOpen(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	if a.cfg == nil || a.cfg.Recorded == nil {
		return status.Error(codes.Unimplemented, "this controller follows no values that become known")
	}
	if _, err := a.cfg.Recorded(ctx, name); err != nil {
		return status.Error(codes.Unimplemented, err.Error())
	}
	return nil
}

// sweep removes recorded configurations that nothing names any more. What it
// leaves the next one removes.
func (a *adminServer) sweep(ctx context.Context) {
	if a.cfg == nil {
		return
	}
	if err := store.SweepConfigurations(ctx, a.cfg.Store, a.desk.View().Doc.Recorded); err != nil {
		a.cfg.Log.Warn(err.Error())
	}
}

// do has the desk change the state. One that only looks on is as if nobody could be
// reached: whoever asks takes the lease.
func (a *adminServer) do(ctx context.Context, change Change) error {
	err := a.desk.Do(ctx, change)
	if errors.Is(err, errObserves) || errors.Is(err, errNotLeading) {
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}

// recordOutputs takes in what the accepted configuration's outputs have become.
func (a *adminServer) recordOutputs(ctx context.Context, req *clusterapi.ApplyRequest) (*clusterapi.ApplyResponse, error) {
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

// accepted is an ApplyRequest in the words of package apply.
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

// PausedText says that nothing is changed, since when and what to do.
func PausedText(p *state.Pause) string {
	text := fmt.Sprintf("%s paused the stack at %s", p.By, p.At.Local().Format(time.DateTime))
	if p.Reason != "" {
		text += " (" + strings.TrimSpace(p.Reason) + ")"
	}
	return text + "; fray resume lets it go on"
}

// Pause has the loop look on and change nothing. A stack that is paused stays so.
func (a *adminServer) Pause(ctx context.Context, req *clusterapi.PauseRequest) (*clusterapi.PauseResponse, error) {
	err := a.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
		return Paused(doc, state.Pause{At: now, By: callerOf(ctx).User, Reason: req.GetReason()}), nil
	})
	return &clusterapi.PauseResponse{}, err
}

// Resume lets the loop act again.
func (a *adminServer) Resume(ctx context.Context, _ *clusterapi.ResumeRequest) (*clusterapi.ResumeResponse, error) {
	err := a.do(ctx, func(doc *state.Document, _ time.Time) (*state.Document, error) { return Resumed(doc), nil })
	return &clusterapi.ResumeResponse{}, err
}

// Paused is doc in which nothing is to be changed; doc itself if that is so already.
func Paused(doc *state.Document, p state.Pause) *state.Document {
	if doc.Paused != nil {
		return doc
	}
	next := doc.Clone()
	next.Paused = &p
	return next
}

// Resumed is doc without a pause.
func Resumed(doc *state.Document) *state.Document {
	if doc.Paused == nil {
		return doc
	}
	next := doc.Clone()
	next.Paused = nil
	return next
}
