package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/admission"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	langrequest "github.com/fray-ml/fray/lang/request"
	planlaunch "github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Launch starts a job.
func (c *Server) Launch(ctx context.Context, req *clusterapi.LaunchRequest) (*clusterapi.LaunchResponse, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetRequest() == nil {
		return nil, badrequest.Of(langrequest.Mistake{Path: "request", Summary: "Missing attribute", Detail: "Say what to launch."})
	}
	made, err := c.launch(ctx, &admission.Order{
		Caller: who, Requests: []*clusterapi.JobRequest{req.GetRequest()}, Paths: []string{"request"}, RequestID: req.GetRequestId(),
		Sealer: c.Sealer,
	})
	if err != nil {
		return nil, err
	}
	return &clusterapi.LaunchResponse{JobId: made.IDs[0], Existed: made.Existed}, nil
}

// LaunchGroup starts jobs that are placed together.
func (c *Server) LaunchGroup(ctx context.Context, req *clusterapi.LaunchGroupRequest) (*clusterapi.LaunchGroupResponse, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	o := &admission.Order{Caller: who, Requests: req.GetRequests(), Group: req.GetGroup(), Pool: req.GetReservationId(), RequestID: req.GetRequestId(), Sealer: c.Sealer}
	for i := range o.Requests {
		o.Paths = append(o.Paths, fmt.Sprintf("requests[%d]", i))
	}
	if wrong := o.GroupMistakes(); len(wrong) > 0 {
		return nil, badrequest.Of(wrong...)
	}
	made, err := c.launch(ctx, o)
	if err != nil {
		return nil, err
	}
	return &clusterapi.LaunchGroupResponse{JobIds: made.IDs}, nil
}

// launch carries an order out, waiting for what it replaces to end.
func (c *Server) launch(ctx context.Context, o *admission.Order) (*admission.Launched, error) {
	if len(o.RequestID) > admission.MaxRequestID {
		return nil, badrequest.Of(langrequest.Mistake{Path: "request_id", Summary: "Invalid value for request_id", Detail: fmt.Sprintf("It has %d bytes, and may have %d.", len(o.RequestID), admission.MaxRequestID)})
	}
	for i, r := range o.Requests {
		if n := len(r.GetSession()); n > admission.MaxRequestID {
			return nil, badrequest.Of(langrequest.Mistake{Path: o.Paths[i] + ".session", Summary: "Invalid value for session", Detail: fmt.Sprintf("It has %d bytes, and may have %d.", n, admission.MaxRequestID)})
		}
	}
	if o.RequestID == "" {
		o.RequestID = rand.Text()
	}
	if err := c.uploaded(ctx, o); err != nil {
		return nil, err
	}
	for {
		changed := c.State.Changed()
		var made *admission.Launched
		err := c.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
			var err error
			doc, made, err = o.Admit(doc, now)
			return doc, err
		})
		if _, waits := errors.AsType[*planlaunch.NameTakenError](err); err != nil && !waits {
			return nil, err
		}
		if err == nil && made != nil {
			c.shown(ctx, made)
			return made, nil
		}
		select {
		case <-ctx.Done():
			return nil, status.Error(codes.DeadlineExceeded, "the job that has the name is still ending; nothing was launched")
		case <-changed:
		}
	}
}

// shown waits until views have what was launched, so that the caller finds it.
// It is launched even if that does not come.
func (c *Server) shown(ctx context.Context, made *admission.Launched) {
	_ = access.Await(ctx, c.State, func(v *access.View) bool {
		x := c.jobs.Of(v.Doc)
		return !slices.ContainsFunc(made.IDs, func(id string) bool { return x.ByID(id) == nil })
	})
}

// uploaded refuses orders that name what the store does not have.
func (c *Server) uploaded(ctx context.Context, o *admission.Order) error {
	var missing []langrequest.Mistake
	seen := map[string]bool{}
	for i, r := range o.Requests {
		for field, sum := range map[string]string{
			".environment.bundle": r.GetEnvironment().GetBundle(), ".entrypoint.callable.sha256": r.GetEntrypoint().GetCallable().GetSha256(),
		} {
			if sum == "" || !isSum(sum) {
				continue // of the latter, the decoder tells
			}
			has, asked := seen[sum]
			if !asked {
				blobs, err := c.Store.List(ctx, store.BundleKey(sum))
				if err != nil {
					return status.Errorf(codes.Unavailable, "look for bundle %s: %v", sum, err)
				}
				has = len(blobs) > 0
				seen[sum] = has
			}
			if !has {
				missing = append(missing, langrequest.Mistake{
					Path: o.Paths[i] + field, Summary: "Not uploaded", Missing: true,
					Detail: fmt.Sprintf("The store has no %s: upload it before launching.", sum),
				})
			}
		}
	}
	if len(missing) > 0 {
		slices.SortFunc(missing, func(a, b langrequest.Mistake) int { return strings.Compare(a.Path, b.Path) })
		return badrequest.Of(missing...)
	}
	return nil
}
