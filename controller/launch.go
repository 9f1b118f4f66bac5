package controller

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

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/clusterapi"
	langrequest "github.com/fray-ml/fray/lang/request"
	planlaunch "github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// maxLaunchRequestID bounds what a call is told again by, in bytes.
const maxLaunchRequestID = 64

// order is what one call asks to launch, as it came.
type order struct {
	who       caller
	requests  []*clusterapi.JobRequest
	paths     []string // of the requests in the message
	group     *clusterapi.JobGroup
	pool      string // the reservation of those that name none
	requestID string
	sealer    schema.Sealer
}

// Launch starts a job.
func (c *clusterServer) Launch(ctx context.Context, req *clusterapi.LaunchRequest) (*clusterapi.LaunchResponse, error) {
	who, err := known(ctx)
	if err != nil {
		return nil, err
	}
	if req.GetRequest() == nil {
		return nil, refused([]langrequest.Mistake{{Path: "request", Summary: "Missing attribute", Detail: "Say what to launch."}})
	}
	made, err := c.launch(ctx, &order{
		who: who, requests: []*clusterapi.JobRequest{req.GetRequest()}, paths: []string{"request"}, requestID: req.GetRequestId(),
		sealer: c.Sealer,
	})
	if err != nil {
		return nil, err
	}
	return &clusterapi.LaunchResponse{JobId: made.ids[0], Existed: made.existed}, nil
}

// LaunchGroup starts jobs that are placed together.
func (c *clusterServer) LaunchGroup(ctx context.Context, req *clusterapi.LaunchGroupRequest) (*clusterapi.LaunchGroupResponse, error) {
	who, err := known(ctx)
	if err != nil {
		return nil, err
	}
	o := &order{who: who, requests: req.GetRequests(), group: req.GetGroup(), pool: req.GetReservationId(), requestID: req.GetRequestId(), sealer: c.Sealer}
	for i := range o.requests {
		o.paths = append(o.paths, fmt.Sprintf("requests[%d]", i))
	}
	if wrong := o.groupMistakes(); len(wrong) > 0 {
		return nil, refused(wrong)
	}
	made, err := c.launch(ctx, o)
	if err != nil {
		return nil, err
	}
	return &clusterapi.LaunchGroupResponse{JobIds: made.ids}, nil
}

func (o *order) groupMistakes() []langrequest.Mistake {
	var found []langrequest.Mistake
	if !schema.ValidLaunchName(o.group.GetName()) {
		found = append(found, langrequest.Mistake{Path: "group.name", Summary: "Invalid name", Detail: fmt.Sprintf(
			"%q cannot name a group: a name is letters, digits and . _ - /, beginning and ending with a letter, a digit or an underscore, at most 200 in all.", o.group.GetName())})
	}
	if len(o.requests) == 0 {
		found = append(found, langrequest.Mistake{Path: "requests", Summary: "Missing attribute", Detail: "A group places jobs together: name at least one."})
	}
	names := map[string]int{}
	for i, r := range o.requests {
		if first, twice := names[r.GetName()]; twice {
			found = append(found, langrequest.Mistake{Path: o.paths[i] + ".name", Summary: "Declared twice", Detail: fmt.Sprintf("requests[%d] is called %s already: rename one of the two.", first, r.GetName())})
		}
		names[r.GetName()] = i
		if ns := r.GetNamespace(); ns != "" && o.group.GetNamespace() != "" && ns != o.group.GetNamespace() {
			found = append(found, langrequest.Mistake{Path: o.paths[i] + ".namespace", Summary: "Two namespaces in one group", Detail: fmt.Sprintf("The group is in %s: say the same here, or nothing.", o.group.GetNamespace())})
		}
	}
	return found
}

// launched is what came of an order.
type launched struct {
	ids     []string
	existed bool // nothing was started: it was before
}

// launch carries an order out, waiting for what it replaces to end.
func (c *clusterServer) launch(ctx context.Context, o *order) (*launched, error) {
	if len(o.requestID) > maxLaunchRequestID {
		return nil, refused([]langrequest.Mistake{{Path: "request_id", Summary: "Invalid value for request_id", Detail: fmt.Sprintf("It has %d bytes, and may have %d.", len(o.requestID), maxLaunchRequestID)}})
	}
	if o.requestID == "" {
		o.requestID = rand.Text()
	}
	if err := c.uploaded(ctx, o); err != nil {
		return nil, err
	}
	for {
		changed := c.Desk.Changed()
		var made *launched
		err := c.do(ctx, func(doc *state.Document, now time.Time) (*state.Document, error) {
			var err error
			doc, made, err = o.carryOut(doc, now)
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

// shown waits until views have what was launched, so that whoever asked finds it.
// It is launched even if that does not come.
func (c *clusterServer) shown(ctx context.Context, made *launched) {
	_ = c.await(ctx, func(v *View) bool {
		x := c.jobs(v)
		return !slices.ContainsFunc(made.ids, func(id string) bool { return x.byID[id] == nil })
	})
}

// uploaded refuses orders that name what the store does not have.
func (c *clusterServer) uploaded(ctx context.Context, o *order) error {
	var missing []langrequest.Mistake
	seen := map[string]bool{}
	for i, r := range o.requests {
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
					Path: o.paths[i] + field, Summary: "Not uploaded", Missing: true,
					Detail: fmt.Sprintf("The store has no %s: upload it before launching.", sum),
				})
			}
		}
	}
	if len(missing) > 0 {
		slices.SortFunc(missing, func(a, b langrequest.Mistake) int { return strings.Compare(a.Path, b.Path) })
		return refused(missing)
	}
	return nil
}

// inherited is what an order takes from the job that gives it.
type inherited struct {
	parent    *state.Job // nil: a user asks
	namespace string
	provider  schema.ProviderName
	region    string
}

// carryOut is the change that launches. It is pure. Without a result it ends
// what has the names, and is to be tried again.
func (o *order) carryOut(doc *state.Document, now time.Time) (*state.Document, *launched, error) {
	from, err := o.inherit(doc)
	if err != nil {
		return nil, nil, err
	}
	addrs := make([]schema.Address, len(o.requests))
	made := &launched{ids: make([]string, len(o.requests))}
	for i, r := range o.requests {
		addrs[i] = schema.LaunchedAddress(schema.KindJob, from.namespace, o.group.GetName(), r.GetName())
		made.ids[i] = planlaunch.LaunchID(doc.Lineage, addrs[i], o.requestID)
	}
	if before := doc.Jobs[addrs[0]]; before != nil && before.ID == made.ids[0] || doc.Past[made.ids[0]] != nil {
		made.existed = true // this very request
		return doc, made, nil
	}
	specs, err := o.decode(doc, from, now)
	if err != nil {
		return nil, nil, err
	}
	clash, err := o.clashes(doc, addrs)
	switch {
	case err != nil:
		return nil, nil, err
	case clash.kept != nil:
		return doc, clash.kept, nil
	case len(clash.ending) > 0:
		for _, addr := range clash.ending {
			doc = planlaunch.Terminated(doc, addr)
		}
		return doc, nil, nil
	}
	next, err := planlaunch.Launched(doc, o.launchings(from, specs), now)
	return next, made, err
}

// inherit finds what the order takes from its caller.
func (o *order) inherit(doc *state.Document) (*inherited, error) {
	asked, path := o.requests[0].GetNamespace(), o.paths[0]+".namespace"
	if o.group.GetNamespace() != "" {
		asked, path = o.group.GetNamespace(), "group.namespace"
	}
	namespace, err := namespaceFor(o.who, asked, path)
	if err != nil {
		return nil, err
	}
	for i, r := range o.requests {
		if _, err := namespaceFor(o.who, r.GetNamespace(), o.paths[i]+".namespace"); err != nil {
			return nil, err
		}
	}
	if namespace == "" {
		namespace = planlaunch.LaunchNamespace(o.requests[0].GetName())
		if o.group != nil {
			namespace = planlaunch.LaunchNamespace(o.group.GetName())
		}
	}
	from := &inherited{namespace: namespace}
	if o.who.Kind != callerJob {
		return from, nil
	}
	from.parent = jobOf(doc, o.who.JobID)
	if err := stillRuns(from.parent, o.who); err != nil {
		return nil, err
	}
	from.provider = from.parent.Spec.Resources.Provider
	from.region = runsIn(doc, from.parent)
	return from, nil
}

// runsIn is the region where a job runs, "" where there are none.
func runsIn(doc *state.Document, j *state.Job) string {
	if last := j.Last(); last != nil && len(last.Slices) > 0 && doc.Slices[last.Slices[0]] != nil {
		return accelerators.RegionOf(doc.Slices[last.Slices[0]].Spec.Zone)
	}
	return ""
}

// stillRuns refuses what jobs ask for that are ending.
func stillRuns(j *state.Job, who caller) error {
	switch {
	case j == nil:
		return status.Errorf(codes.FailedPrecondition, "job %s, which asks, is not known any more", who.JobID)
	case j.Status.Ended() || j.Stop || !j.Running() || j.Attempt != who.Attempt:
		return status.Errorf(codes.FailedPrecondition, "attempt %d of job %s, which asks, has ended or is ending", who.Attempt, who.JobID)
	}
	return nil
}

// launchings are the records of the order: the group first.
func (o *order) launchings(from *inherited, specs []*schema.Job) []planlaunch.Launching {
	launch := state.Launch{Request: o.requestID}
	if from.parent != nil {
		launch.Parent, launch.ParentAttempt = from.parent.ID, o.who.Attempt
	} else {
		launch.By = o.who.User
	}
	var all []planlaunch.Launching
	if o.group != nil {
		of := launch
		of.Name = o.group.GetName()
		all = append(all, planlaunch.Launching{Group: o.groupSpec(from.namespace), Launch: of})
	}
	for i, spec := range specs {
		of := launch
		of.Name, of.Detached = o.requests[i].GetName(), o.requests[i].GetDetached()
		all = append(all, planlaunch.Launching{Job: spec, Launch: of})
	}
	return all
}

func (o *order) groupSpec(namespace string) *schema.JobGroup {
	if o.group == nil {
		return nil
	}
	return &schema.JobGroup{
		Addr: schema.LaunchedAddress(schema.KindJobGroup, namespace, "", o.group.GetName()), Namespace: namespace,
		SameRegion: o.group.GetSameRegion(), SameZone: o.group.GetSameZone(),
	}
}
