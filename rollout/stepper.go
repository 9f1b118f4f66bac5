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
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
)

// Stepper carries a change out: by steps of our own, under the lease, or by
// following those of a controller.
type Stepper interface {
	Step(ctx context.Context) (time.Duration, error)
	Wait(ctx context.Context, d time.Duration)
	Document() *state.Document
	Last() *plan.Plan
	Idle() bool
	// OutOfScope are actions that are due and that the scope leaves out.
	OutOfScope() []plan.Action
	// Accept makes doc, made from Document, the state.
	Accept(ctx context.Context, doc *state.Document) error
	Save(ctx context.Context) error
	Drain(ctx context.Context)
	SetScope(scope apply.Scope)
}

var (
	_ Stepper = (*apply.Stepper)(nil)
	_ Stepper = (*controllerStepper)(nil)
)

// controllerStepper follows a controller that has accepted a change.
type controllerStepper struct {
	apply.Follower

	admin    clusterapi.AdminClient
	revision uint64
	values   valueSync
}

// Step observes once. What is wrong with the configuration, by values that are known
// now, is its error.
func (h *controllerStepper) Step(ctx context.Context) (time.Duration, error) {
	next, err := h.Follower.Step(ctx)
	if err != nil {
		return next, err
	}
	return next, h.values.observe(h.Document(), time.Now())
}

// Idle reports whether the controller has taken in what is known.
func (h *controllerStepper) Idle() bool { return h.values.over() }

// Accept has the controller record doc's outputs: nothing else of it is ours to change.
func (h *controllerStepper) Accept(ctx context.Context, doc *state.Document) error {
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

// read takes in the state that was accepted.
func (h *controllerStepper) read(ctx context.Context) error {
	_, err := h.Step(ctx)
	return err
}

// OutOfScope is empty: a controller has no scope.
func (h *controllerStepper) OutOfScope() []plan.Action { return nil }

func (h *controllerStepper) Save(context.Context) error { return nil }

func (h *controllerStepper) Drain(context.Context) {}

func (h *controllerStepper) SetScope(apply.Scope) {}

// rpcError is an error of the cluster API without gRPC's prefix.
func rpcError(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return errors.New(s.Message())
	}
	return err
}
