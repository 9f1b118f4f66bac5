package main

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
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
)

// carrier is who carries a change out: steps of our own, under the lease, or
// those of a controller, which are followed.
type carrier interface {
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
	_ carrier = (*apply.Stepper)(nil)
	_ carrier = (*handover)(nil)
)

// handover follows a controller that has accepted a change.
type handover struct {
	apply.Follower

	admin    clusterapi.AdminClient
	revision uint64
	uptake   uptake
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
func (r *runner) handsOver(ctx context.Context, doc *state.Document) (bool, error) {
	if lease, served := r.l.stack.served(ctx); !served || lease.Command == watchObserves || doc.LocalPlace == "" && r.l.stack.place() != "" {
		return false, nil
	}
	if _, _, ok, err := r.c.amender.handed(ctx, doc); err != nil || !ok {
		return false, err
	}
	if r.c.keeps {
		return true, nil
	}
	_, err := r.l.recording(r.c.targets)
	if r.unfit(err) {
		return false, nil
	}
	return err == nil, err
}

// throughController leaves the change to the controller that leads and follows
// it. It reports false where nothing was done and the lease must be taken: the
// controller cannot be reached from here.
func (r *runner) throughController(soft, hard context.Context, shown *plan.Plan) (bool, error) {
	// Who serves has saved the state. One that was read before that may be a first
	// one that is nobody's, whose mark no controller knows.
	if _, served := r.l.stack.served(soft); !served {
		return false, nil
	}
	doc, err := r.l.stack.load(soft)
	if err != nil {
		return false, nil
	}
	if ok, err := r.handsOver(soft, doc); err != nil || !ok {
		return false, err
	}
	conn, err := r.l.stack.cluster(soft, doc)
	if err != nil {
		return false, nil
	}
	defer func() { _ = conn.Close() }()
	if r.saved != nil {
		if err := r.saved(doc); err != nil {
			return true, err
		}
	}
	all, err := r.l.stack.providers(soft, r.l.desired.Providers, doc)
	if err != nil {
		return false, err
	}
	r.progress = newProgress(r.app)
	r.progress.tells = r.answersFor
	defer r.progress.close()
	h := &handover{
		Follower: apply.Follower{Store: r.l.stack.store, Providers: all, OnStep: r.progress.step},
		admin:    clusterapi.NewAdminClient(conn),
	}
	if err := h.Start(soft); err != nil {
		return false, err
	}
	r.stepper = h
	p, answer, err := r.offer(soft, h, doc, shown)
	switch status.Code(err) {
	case codes.OK:
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unimplemented:
		r.app.warn("the controller that leads cannot be reached from here: " + status.Convert(err).Message() + "; asking it for its lease instead")
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
	r.progress.line("Handed over to the controller that leads; Ctrl-C ends the following, not the change.")
	if err := h.read(soft); err != nil {
		return true, err
	}
	r.scope = r.scopeOf(p)
	return true, r.finish(hard, r.loop(soft, hard), p)
}

// acceptedAfterAll looks, where no answer came, whether the controller accepted
// the change: then it must not be asked for once more. nil: it did not.
func (r *runner) acceptedAfterAll(ctx context.Context, before *state.Document, err error) *clusterapi.ApplyResponse {
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		return nil
	}
	now, loadErr := r.l.stack.load(ctx)
	if loadErr != nil || now.Revision != before.Revision+1 {
		return nil
	}
	// Values that became known since are in it already.
	same := r.c.recorded != "" && now.Recorded == r.c.recorded
	if wanted := r.c.request(before).Desired; !same && !plan.SameDesired(&now.Desired, &wanted) {
		return nil
	}
	return &clusterapi.ApplyResponse{Revision: now.Revision}
}

// offers is how often a change is planned anew that nobody was asked about: the
// state is written once a second, and the controller knows what is newer.
const offers = 4

// offer plans the change and asks the controller for it.
func (r *runner) offer(ctx context.Context, h *handover, doc *state.Document, shown *plan.Plan) (*plan.Plan, *clusterapi.ApplyResponse, error) {
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
		if status.Code(err) != codes.Aborted || shown != nil || r.saved != nil || r.flags.json || n == offers {
			return p, answer, err
		}
		r.progress.line("The stack has changed meanwhile; planning anew.")
		h.Wait(ctx, max(time.Second, r.l.stack.store.WriteInterval()))
		if doc, err = r.l.stack.load(ctx); err != nil {
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
func (r *runner) proposal(ctx context.Context, doc *state.Document, shown *plan.Plan) (*plan.Plan, *clusterapi.ApplyRequest, error) {
	r.l.doc = doc
	amended, amendments, ok, err := r.c.amender.handed(ctx, doc)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, status.Error(codes.Unimplemented, "what exists is to be taken in")
	}
	r.failedBefore = failedAttempts(amended)
	p, err := r.l.preview(ctx, r.c)
	if err != nil {
		return nil, nil, untouched(ctx, err)
	}
	if err := r.confirm(p, shown); err != nil {
		return nil, nil, err
	}
	if err := r.l.upload(ctx, r.progress.line); err != nil {
		return nil, nil, untouched(ctx, err)
	}
	if !r.c.keeps {
		if r.c.recorded, err = r.record(ctx); err != nil {
			return nil, nil, untouched(ctx, err)
		}
	}
	next := r.l.accept(ctx, r.c, amended)
	if err := r.shipAgent(ctx, next); err != nil {
		return nil, nil, err
	}
	req, err := r.asked(next, amendments)
	return p, req, err
}

// asked is what asks a controller for a change: next is what comes of it.
func (r *runner) asked(next *state.Document, amendments []plan.Amendment) (*clusterapi.ApplyRequest, error) {
	_, digest, err := plan.Proposed(&next.Desired, next, time.Now())
	if err != nil {
		return nil, err
	}
	blocks := controller.Amendments{Approved: amendments}
	if r.l.cfg != nil {
		blocks.Moves, blocks.Removals = r.l.cfg.Moves, r.l.cfg.Removals
	}
	amend, err := blocks.Encode()
	if err != nil {
		return nil, err
	}
	request := r.c.request(r.l.doc)
	desired, err := json.Marshal(request.Desired)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	var explanation []byte
	if r.l.explains(r.c) {
		if explanation, err = json.Marshal(apply.ExplanationOf(next)); err != nil {
			return nil, fmt.Errorf("encode causes: %w", err)
		}
	}
	return &clusterapi.ApplyRequest{
		Desired: desired, PlanDigest: digest, LocalPlace: r.l.stack.place(),
		Replace: addressTexts(request.Replace), Stop: addressTexts(request.Stop),
		Unlaunch: addressTexts(request.Unlaunch), UnlaunchAll: request.UnlaunchAll,
		Recorded: request.Recorded, KeepRecorded: request.KeepRecorded, Amendments: amend,
		Explanation: explanation,
	}, nil
}

// following follows the values of what was handed over; nil where nothing waits
// for any.
func (r *runner) following() *apply.Late {
	if r.l.cfg == nil || !r.l.cfg.Waits() {
		return nil
	}
	return &apply.Late{Source: r.l.src, Options: r.l.opts, Sealer: r.l.sealer, Targets: r.c.targets}
}
