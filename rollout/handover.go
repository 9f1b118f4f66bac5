package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/admin"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// controllerRun is a run that the controller which leads carries out.
type controllerRun struct {
	*run

	controller *controllerStepper
}

// throughController leaves the change to the controller that leads and follows
// it. It reports false where nothing was done and the lease must be taken: the
// controller cannot be reached from here.
func (r *run) throughController(starting, finishing context.Context, shown *plan.Plan) (bool, error) {
	// Who serves has saved the state. One that was read before that may be a first
	// one that was never saved, whose mark no controller knows.
	if _, served := r.Loaded.Stack.Served(starting); !served {
		return false, nil
	}
	doc, err := r.Loaded.Stack.Load(starting)
	if err != nil {
		return false, nil
	}
	if ok, err := r.handsOver(starting, doc); err != nil || !ok {
		return false, err
	}
	conn, err := r.Loaded.Stack.Cluster(starting, doc)
	if err != nil {
		return false, nil
	}
	defer func() { _ = conn.Close() }()
	if r.checkSaved != nil {
		if err := r.checkSaved(doc); err != nil {
			return true, err
		}
	}
	all, err := r.Loaded.Stack.Providers(starting, r.Loaded.Desired.Providers, doc)
	if err != nil {
		return false, err
	}
	r.progress = progress.New(r.Terminal)
	r.progress.Tells = r.answersFor
	defer r.progress.Close()
	c := controllerRun{run: r, controller: &controllerStepper{
		Follower: apply.Follower{Store: r.Loaded.Stack.Store, Providers: all, OnStep: r.progress.Step},
		admin:    clusterapi.NewAdminClient(conn),
	}}
	if err := c.controller.Start(starting); err != nil {
		return false, err
	}
	r.stepper = c.controller
	p, answer, err := c.offer(starting, doc, shown)
	switch status.Code(err) {
	case codes.OK:
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unimplemented:
		r.Terminal.Warn("the controller that leads cannot be reached from here: " + status.Convert(err).Message() + "; asking it for its lease instead")
		return false, nil
	default:
		return true, rpcError(err)
	}
	c.controller.revision, c.controller.values.late = answer.GetRevision(), c.following()
	return true, c.follow(starting, finishing, p)
}

// follow follows an accepted change to its end.
func (r *controllerRun) follow(starting, finishing context.Context, p *plan.Plan) error {
	if len(p.Amendments) > 0 { // what has other addresses now is nothing new
		if err := r.controller.Start(starting); err != nil {
			return err
		}
	}
	r.handedOver.Store(true)
	r.progress.Line("Handed over to the controller that leads; Ctrl-C ends the following, not the change.")
	if err := r.controller.read(starting); err != nil {
		return err
	}
	r.setFromPlan(p)
	return r.finish(finishing, r.loop(starting, finishing), p)
}

// handsOver reports whether a change can be left to the controller that leads: not
// one that takes in what exists, nor one whose late values no controller could sync, and a
// controller that only observes would never carry it out.
func (r *run) handsOver(ctx context.Context, doc *state.Document) (bool, error) {
	if lease, served := r.Loaded.Stack.Served(ctx); !served || lease.Command == stack.WatchObserves || doc.LocalPlace == "" && r.Loaded.Stack.Place() != "" {
		return false, nil
	}
	if _, _, ok, err := r.Change.Amender.ForController(ctx, doc); err != nil || !ok {
		return false, err
	}
	if r.Change.KeepsRecorded {
		return true, nil
	}
	_, err := r.Loaded.Recording(r.Change.Targets)
	if r.recorder.unfit(err) {
		return false, nil
	}
	return err == nil, err
}

// offers is how often a change that needed no approval is planned anew: the
// state is written once a second, and the controller knows what is newer.
const offers = 4

// offer plans the change and asks the controller for it.
func (r *controllerRun) offer(ctx context.Context, doc *state.Document, shown *plan.Plan) (*plan.Plan, *clusterapi.ApplyResponse, error) {
	for n := 1; ; n++ {
		p, req, err := r.planForController(ctx, doc, shown)
		if err != nil {
			return nil, nil, err
		}
		reached, cancel := context.WithTimeout(ctx, reachTimeout)
		answer, err := r.controller.admin.Apply(reached, req)
		cancel()
		if accepted := r.acceptedAfterAll(ctx, doc, err); accepted != nil {
			return p, accepted, nil
		}
		if status.Code(err) != codes.Aborted || shown != nil || r.checkSaved != nil || r.Options.JSON || n == offers {
			return p, answer, err
		}
		r.progress.Line("The stack has changed meanwhile; planning anew.")
		r.controller.Wait(ctx, max(time.Second, r.Loaded.Stack.Store.WriteInterval()))
		if doc, err = r.Loaded.Stack.Load(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// reachTimeout is how long a controller may take to accept a change: it may
// wait for its state to be saved, but not for ever.
const reachTimeout = 15 * time.Second

// acceptedAfterAll checks, where no answer came, whether the controller accepted
// the change: then it must not be asked for once more. nil: it did not.
func (r *controllerRun) acceptedAfterAll(ctx context.Context, before *state.Document, err error) *clusterapi.ApplyResponse {
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		return nil
	}
	now, loadErr := r.Loaded.Stack.Load(ctx)
	if loadErr != nil || now.Revision != before.Revision+1 {
		return nil
	}
	// Values that became known since are in it already.
	same := r.Change.Recorded != "" && now.Recorded == r.Change.Recorded
	if desired := r.Change.Request(before).Desired; !same && !reconcile.SameDesired(&now.Desired, &desired) {
		return nil
	}
	return &clusterapi.ApplyResponse{Revision: now.Revision}
}

// planForController returns the plan, approved, and what asks the controller for it.
func (r *controllerRun) planForController(ctx context.Context, doc *state.Document, shown *plan.Plan) (*plan.Plan, *clusterapi.ApplyRequest, error) {
	r.Loaded.Document = doc
	amended, amendments, ok, err := r.Change.Amender.ForController(ctx, doc)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, status.Error(codes.Unimplemented, "what exists is to be taken in")
	}
	r.failedBefore = failedAttempts(amended)
	p, err := proposal.Preview(ctx, r.Loaded, r.Change)
	if err != nil {
		return nil, nil, terminal.Interrupted(ctx, err)
	}
	if err := r.confirm(p, shown); err != nil {
		return nil, nil, err
	}
	if err := r.Loaded.Upload(ctx, r.progress.Line); err != nil {
		return nil, nil, terminal.Interrupted(ctx, err)
	}
	if !r.Change.KeepsRecorded {
		if r.Change.Recorded, err = r.recorder.record(ctx); err != nil {
			return nil, nil, terminal.Interrupted(ctx, err)
		}
	}
	next := proposal.Accept(ctx, r.Loaded, r.Change, amended)
	next.Overrides = state.WithOverrides(next.Overrides, proposal.Overrides(p), next.Revision)
	if err := ShipAgent(ctx, r.Loaded, next, r.progress.Upload); err != nil {
		return nil, nil, err
	}
	req, err := r.request(next, amendments)
	return p, req, err
}

// request asks a controller for a change: next is what comes of it.
func (r *controllerRun) request(next *state.Document, amendments []plan.Amendment) (*clusterapi.ApplyRequest, error) {
	_, digest, err := reconcile.Proposed(&next.Desired, next, time.Now())
	if err != nil {
		return nil, err
	}
	blocks := admin.Amendments{Approved: amendments}
	if r.Loaded.Config != nil {
		blocks.Moves, blocks.Removals = r.Loaded.Config.Moves, r.Loaded.Config.Removals
	}
	amend, err := blocks.Encode()
	if err != nil {
		return nil, err
	}
	request := r.Change.Request(r.Loaded.Document)
	desired, err := json.Marshal(request.Desired)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	var explanation []byte
	if e := apply.ExplanationOf(next); proposal.Explains(r.Loaded, r.Change) || len(e.Overrides) > 0 {
		if explanation, err = json.Marshal(e); err != nil {
			return nil, fmt.Errorf("encode causes: %w", err)
		}
	}
	return &clusterapi.ApplyRequest{
		Desired: desired, PlanDigest: digest, LocalPlace: r.Loaded.Stack.Place(),
		Replace: AddressStrings(request.Replace), Stop: AddressStrings(request.Stop),
		Unlaunch: AddressStrings(request.Unlaunch), UnlaunchAll: request.UnlaunchAll,
		Recorded: request.Recorded, KeepRecorded: request.KeepRecorded, Amendments: amend,
		Explanation: explanation,
	}, nil
}

// following follows the values of what was handed over; nil where nothing waits
// for any.
func (r *controllerRun) following() *apply.Late {
	if r.Loaded.Config == nil || !r.Loaded.Config.Waits() {
		return nil
	}
	r.Loaded.Begin()
	return &apply.Late{Source: r.Loaded.Source, Options: r.Loaded.Options, Sealer: r.Loaded.Sealer, Targets: r.Change.Targets}
}
