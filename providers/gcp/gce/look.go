package gce

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/schema"
)

// What a listing spends on single groups is bounded, so that its cost does not grow
// with them: those that were inspected longest ago come first.
const (
	inspectAtOnce = 16
	inspectEvery  = 10 * time.Second
)

// inspectGroups asks groups that have no machine yet for their errors. A group that
// cannot be asked is asked the next time.
func (g *Engine) inspectGroups(ctx context.Context, groups []machineGroup) {
	g.mu.Lock()
	var waiting []*machineGroup
	for i := range groups {
		f := &groups[i]
		n := g.note(f.spec.Name)
		n.stack, n.zone = f.spec.Stack, f.spec.Zone
		f.observe(n)
		f.note = *n
		if up, _, _ := f.count(); up == 0 && f.group != nil && !n.isGoing(g.now()) && !n.complete && g.now().Sub(n.inspectedAt) >= inspectEvery {
			waiting = append(waiting, f)
		}
	}
	g.mu.Unlock()
	slices.SortFunc(waiting, func(a, b *machineGroup) int {
		return cmp.Or(a.note.inspectedAt.Compare(b.note.inspectedAt), cmp.Compare(a.spec.Name, b.spec.Name))
	})
	var looks sync.WaitGroup
	for _, f := range waiting[:min(len(waiting), inspectAtOnce)] {
		looks.Go(func() { g.inspectGroup(ctx, f) })
	}
	looks.Wait()
}

// observe notes what this listing adds to those before.
func (f *machineGroup) observe(n *note) {
	up, there, _ := f.count()
	f.note = *n
	switch {
	case f.group == nil:
	case up >= f.spec.Hosts:
		n.complete, n.absent = true, 0
	case f.lacks(up, there):
		n.absent++
	default:
		n.absent = 0
	}
}

func (g *Engine) inspectGroup(ctx context.Context, f *machineGroup) {
	var seen inspection
	var err error
	if byResize(f.spec) && f.group.Size() == 0 {
		seen, err = g.inspectResize(ctx, f.spec)
	} else {
		seen.problem, err = g.groupProblem(ctx, f.spec)
	}
	if err != nil {
		return
	}
	g.noted(f.spec.Name, func(n *note) {
		n.inspectedAt, n.problem = g.now(), seen.problem
		n.resized = n.resized || seen.resized
		if seen.served && !n.served {
			n.served = true // its machines may have come since they were listed
		} else if seen.served {
			n.problem = apierror.Errorf(schema.ErrorPreempted, "its machines have had their time")
		}
		f.note = *n
	})
}

// inspection is what an inspection of one group shows.
type inspection struct {
	problem error
	resized bool // its machines have been requested
	served  bool // and had
}

// groupProblem is the latest error of a group's machines, nil for none.
func (g *api) groupProblem(ctx context.Context, spec schema.SliceSpec) (error, error) {
	path := groupPath(spec.Zone, spec.Name, "listErrors")
	var latest *computeapi.GroupError
	err := everyPage(ctx, func(ctx context.Context, token string) (string, error) {
		page, err := computeapi.Get[computeapi.GroupErrorList](ctx, g.client, path, computeapi.Query{"pageToken": token})
		if err != nil {
			return "", err
		}
		for _, each := range page.Items {
			if latest == nil || createdAt(each.Timestamp).After(createdAt(latest.Timestamp)) {
				latest = &each
			}
		}
		return page.NextPageToken, nil
	})
	if latest == nil || err != nil {
		return nil, err
	}
	return &apierror.OperationError{Code: latest.Error.Code, Message: latest.Error.Message}, nil
}

// inspectResize returns how the request for a group's machines stands.
func (g *api) inspectResize(ctx context.Context, spec schema.SliceSpec) (inspection, error) {
	request, found, err := lookup[computeapi.ResizeRequest](ctx, g, "read resize request", groupPath(spec.Zone, spec.Name, "resizeRequests", spec.Name))
	if err != nil || !found {
		return inspection{}, err
	}
	seen := inspection{resized: true}
	failures := request.Status.LastAttempt.Error.Errors
	switch request.State {
	case "SUCCEEDED":
		seen.served = true
		return seen, nil
	case "CANCELLED":
		seen.problem = apierror.Errorf(schema.ErrorInvalid, "its resize request was cancelled")
		return seen, nil
	case "FAILED":
		if why := request.Status.Error.Errors; len(why) > 0 {
			failures = why
		}
		if len(failures) == 0 {
			failures = []computeapi.Error{{Message: "the service states no reason"}}
		}
		why := failureOf(failures)
		kind := apierror.KindOf(why)
		if kind == schema.ErrorUnavailable {
			kind = schema.ErrorCapacity // there was none, whatever the text
		}
		seen.problem = &infeasibleError{&apierror.Error{Kind: kind, Err: fmt.Errorf("its resize request failed: %w", why)}}
		return seen, nil
	}
	if len(failures) > 0 {
		seen.problem = failureOf(failures)
	}
	return seen, nil
}

// sweepGroups goes on with the deletions whose group is gone by now. One that is
// rejected is noted as not going on, so that it is asked for again, with the reason.
func (g *Engine) sweepGroups(ctx context.Context, groups []machineGroup) {
	var sweeps sync.WaitGroup
	left := inspectAtOnce
	for i := range groups {
		f := &groups[i]
		if f.group != nil || !f.note.isGoing(g.now()) || left == 0 {
			continue
		}
		left--
		sweeps.Go(func() {
			at := engine.Place{Engine: schema.EngineGCE, Zone: f.spec.Zone, Name: f.spec.Name}
			if err := g.goes(at.Name, g.sweep(ctx, at)); err != nil {
				f.note.deletedAt = time.Time{}
			}
		})
	}
	sweeps.Wait()
}
