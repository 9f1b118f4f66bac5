package rollout

import (
	"context"
	"encoding/json"
	"errors"
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

// Executor is who carries a change out: steps of our own, under the lease, or
// those of a controller, which are followed.
type Executor interface {
	Step(ctx context.Context) (time.Duration, error)
	Wait(ctx context.Context, d time.Duration)
	Document() *state.Document
	Last() *plan.Plan
	Idle() bool
	// Beyond are actions that are due and that the scope leaves out.
	Beyond() []plan.Action
	// Accept makes doc, made from Document, the state.
	Accept(ctx context.Context, doc *state.Document) error
	Save(ctx context.Context) error
	Drain(ctx context.Context)
	SetScope(scope apply.Scope)
}

var (
	_ Executor = (*apply.Stepper)(nil)
	_ Executor = (*handover)(nil)
)

// handover follows a controller that has accepted a change.
type handover struct {
	apply.Follower

	admin    clusterapi.AdminClient
	revision uint64
	uptake   valueSync
}

// Step looks once. What is wrong with the configuration, by values that are known
// now, is its error.
func (h *handover) Step(ctx context.Context) (time.Duration, error) {
	next, err := h.Follower.Step(ctx)
	if err != nil {
		return next, err
	}
	return next, h.uptake.look(h.Document(), time.Now())
}

// Idle reports whether the controller has taken in what is known.
func (h *handover) Idle() bool { return h.uptake.over() }

// Accept has the controller record doc's outputs: nothing else of it is ours to change.
func (h *handover) Accept(ctx context.Context, doc *state.Document) error {
	outputs, err := json.Marshal(doc.Outputs)
	if err != nil {
		return fmt.Errorf("encode outputs: %w", err)
	}
	_, err = h.admin.Apply(ctx, &clusterapi.ApplyRequest{Outputs: outputs, Revision: h.revision})
	if err != nil {
		return fmt.Errorf("record outputs: %w", rpcError(err))
	}
	return h.read(ctx)
}

// Beyond is empty: a controller has no scope.
func (h *handover) Beyond() []plan.Action { return nil }

func (h *handover) Save(context.Context) error { return nil }
func (h *handover) Drain(context.Context)      {}
func (h *handover) SetScope(apply.Scope)       {}

// rpcError is an error of the cluster API in its own words.
func rpcError(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return errors.New(s.Message())
	}
	return err
}

// handsOver reports whether a change can be left to the controller that leads: not
// one that takes in what exists, nor one whose values nobody could follow, and a
// controller that only looks on would never carry it out.
func (r *Rollout) handsOver(ctx context.Context, doc *state.Document) (bool, error) {
	if lease, served := r.Loaded.Stack.Served(ctx); !served || lease.Command == stack.WatchObserves || doc.LocalPlace == "" && r.Loaded.Stack.Place() != "" {
		return false, nil
	}
	if _, _, ok, err := r.Change.Amender.ForController(ctx, doc); err != nil || !ok {
		return false, err
	}
	if r.Change.Keeps {
		return true, nil
	}
	_, err := r.Loaded.Recording(r.Change.Targets)
	if r.unfit(err) {
		return false, nil
	}
	return err == nil, err
}

// throughController leaves the change to the controller that leads and follows
// it. It reports false where nothing was done and the lease must be taken: the
// controller cannot be reached from here.
func (r *Rollout) throughController(soft, hard context.Context, shown *plan.Plan) (bool, error) {
	// Who serves has saved the state. One that was read before that may be a first
	// one that is nobody's, whose mark no controller knows.
	if _, served := r.Loaded.Stack.Served(soft); !served {
		return false, nil
	}
	doc, err := r.Loaded.Stack.Load(soft)
	if err != nil {
		return false, nil
	}
	if ok, err := r.handsOver(soft, doc); err != nil || !ok {
		return false, err
	}
	conn, err := r.Loaded.Stack.Cluster(soft, doc)
	if err != nil {
		return false, nil
	}
	defer func() { _ = conn.Close() }()
	if r.saved != nil {
		if err := r.saved(doc); err != nil {
			return true, err
		}
	}
	all, err := r.Loaded.Stack.Providers(soft, r.Loaded.Desired.Providers, doc)
	if err != nil {
		return false, err
	}
	r.progress = progress.New(r.Terminal)
	r.progress.Tells = r.answersFor
	defer r.progress.Close()
	h := &handover{
		Follower: apply.Follower{Store: r.Loaded.Stack.Store, Providers: all, OnStep: r.progress.Step},
		admin:    clusterapi.NewAdminClient(conn),
	}
	if err := h.Start(soft); err != nil {
		return false, err
	}
	r.Executor = h
	p, answer, err := r.offer(soft, h, doc, shown)
	switch status.Code(err) {
	case codes.OK:
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unimplemented:
		r.Terminal.Warn("the controller that leads cannot be reached from here: " + status.Convert(err).Message() + "; asking it for its lease instead")
		return false, nil
	default:
		return true, rpcError(err)
	}
	h.revision, h.uptake.late = answer.GetRevision(), r.following()
	if len(p.Amendments) > 0 { // what has other addresses now is nothing new
		if err := h.Start(soft); err != nil {
			return true, err
		}
	}
	r.handedOver.Store(true)
	r.progress.Line("Handed over to the controller that leads; Ctrl-C ends the following, not the change.")
	if err := h.read(soft); err != nil {
		return true, err
	}
	r.scope = r.scopeOf(p)
	return true, r.finish(hard, r.loop(soft, hard), p)
}

// acceptedAfterAll looks, where no answer came, whether the controller accepted
// the change: then it must not be asked for once more. nil: it did not.
func (r *Rollout) acceptedAfterAll(ctx context.Context, before *state.Document, err error) *clusterapi.ApplyResponse {
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		return nil
	}
	now, loadErr := r.Loaded.Stack.Load(ctx)
	if loadErr != nil || now.Revision != before.Revision+1 {
		return nil
	}
	// Values that became known since are in it already.
	same := r.Change.Recorded != "" && now.Recorded == r.Change.Recorded
	if wanted := r.Change.Request(before).Desired; !same && !reconcile.SameDesired(&now.Desired, &wanted) {
		return nil
	}
	return &clusterapi.ApplyResponse{Revision: now.Revision}
}

// offers is how often a change is planned anew that nobody was asked about: the
// state is written once a second, and the controller knows what is newer.
const offers = 4

// offer plans the change and asks the controller for it.
func (r *Rollout) offer(ctx context.Context, h *handover, doc *state.Document, shown *plan.Plan) (*plan.Plan, *clusterapi.ApplyResponse, error) {
	for n := 1; ; n++ {
		p, req, err := r.proposal(ctx, doc, shown)
		if err != nil {
			return nil, nil, err
		}
		reached, cancel := context.WithTimeout(ctx, reachTimeout)
		answer, err := h.admin.Apply(reached, req)
		cancel()
		if accepted := r.acceptedAfterAll(ctx, doc, err); accepted != nil {
			return p, accepted, nil
		}
		if status.Code(err) != codes.Aborted || shown != nil || r.saved != nil || r.Options.JSON || n == offers {
			return p, answer, err
		}
		r.progress.Line("The stack has changed meanwhile; planning anew.")
		h.Wait(ctx, max(time.Second, r.Loaded.Stack.Store.WriteInterval()))
		if doc, err = r.Loaded.Stack.Load(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// reachTimeout is how long a controller may take to accept a change: it may
// wait for its state to be saved, but not for ever.
const reachTimeout = 15 * time.Second

// read takes in the state that was accepted.
func (h *handover) read(ctx context.Context) error {
	_, err := h.Step(ctx)
	return err
}

// proposal is the plan, approved, and what asks the controller for it.
func (r *Rollout) proposal(ctx context.Context, doc *state.Document, shown *plan.Plan) (*plan.Plan, *clusterapi.ApplyRequest, error) {
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
	if !r.Change.Keeps {
		if r.Change.Recorded, err = r.record(ctx); err != nil {
			return nil, nil, terminal.Interrupted(ctx, err)
		}
	}
	next := proposal.Accept(ctx, r.Loaded, r.Change, amended)
	if err := r.ShipAgent(ctx, next); err != nil {
		return nil, nil, err
	}
	req, err := r.asked(next, amendments)
	return p, req, err
}

// asked is what asks a controller for a change: next is what comes of it.
func (r *Rollout) asked(next *state.Document, amendments []plan.Amendment) (*clusterapi.ApplyRequest, error) {
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
	if proposal.Explains(r.Loaded, r.Change) {
		if explanation, err = json.Marshal(apply.ExplanationOf(next)); err != nil {
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
func (r *Rollout) following() *apply.Late {
	if r.Loaded.Config == nil || !r.Loaded.Config.Waits() {
		return nil
	}
	return &apply.Late{Source: r.Loaded.Source, Options: r.Loaded.Options, Sealer: r.Loaded.Sealer, Targets: r.Change.Targets}
}
