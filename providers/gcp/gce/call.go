package gce

import (
	"context"
	"errors"
	"net/http"
	"strings"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"github.com/google/uuid"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// ask calls once what changes something, within the time that a call may take.
// The error is that of the service, after what was asked for.
func ask[Request, Response any](
	ctx context.Context, what string, method func(context.Context, Request, ...gax.CallOption) (Response, error), request Request,
) (Response, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	response, err := method(bounded, request)
	if err != nil {
		return response, apierror.Interrupted(ctx, &computeCallError{what: what, err: err})
	}
	return response, nil
}

// computeCallError is an error of a call with the service's text.
type computeCallError struct {
	what string // "create instance"
	err  error
}

func (e *computeCallError) Error() string {
	if answer, ok := errors.AsType[*googleapi.Error](e.err); ok {
		return e.what + ": " + apierror.Response(answer).Error()
	}
	return e.what + ": " + e.err.Error()
}

func (e *computeCallError) Unwrap() error { return e.err }

// lookup reads a resource that may not be there, and retries errors that may pass.
func lookup[Request, Response any](
	ctx context.Context, r engine.Reader, what string, method func(context.Context, Request, ...gax.CallOption) (Response, error), request Request,
) (response Response, found bool, err error) {
	err = again(ctx, r, func() error {
		response, err = ask(ctx, what, method, request)
		return err
	})
	if apierror.StatusOf(err) == http.StatusNotFound {
		return response, false, nil
	}
	return response, err == nil, err
}

// again repeats a read while it may work with the next try.
func again(ctx context.Context, r engine.Reader, read func() error) error {
	for try := 0; ; try++ {
		err := read()
		if err == nil || try == engine.ReadTries-1 || ctx.Err() != nil || !mayPassREST(err) {
			return err
		}
		if cause := r.Wait(ctx, try); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

func mayPassREST(err error) bool {
	status := apierror.StatusOf(err)
	// No status at all is an answer that never came.
	return status == 0 || status >= 500 || status == http.StatusTooManyRequests
}

// stage is a closed set of what one operation after another does for a slice.
type stage string

// The stages; all but the first and the last in the order in which a group is made.
const (
	stageInstance stage = "instance"
	stageTemplate stage = "template"
	stagePolicy   stage = "policy"
	stageGroup    stage = "group"
	stageResize   stage = "resize"
	stageUpdate   stage = "update"
)

// step is an operation as the provider keeps it: "STAGE/NAME".
func step(s stage, op *computepb.Operation) string { return string(s) + "/" + op.GetName() }

// operation asks once how an operation stands. One that the service has forgotten has ended.
func (g *api) operation(ctx context.Context, spec schema.SliceSpec, s stage, name string) (*computepb.Operation, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	var op *computepb.Operation
	var err error
	switch s {
	case stageTemplate:
		op, err = g.clients.global.Get(bounded, &computepb.GetGlobalOperationRequest{Project: g.project, Operation: name})
	case stagePolicy:
		op, err = g.clients.region.Get(bounded, &computepb.GetRegionOperationRequest{Project: g.project, Region: accelerators.RegionOf(spec.Zone), Operation: name})
	case stageInstance, stageGroup, stageResize, stageUpdate:
		op, err = g.clients.zone.Get(bounded, &computepb.GetZoneOperationRequest{Project: g.project, Zone: spec.Zone, Operation: name})
	}
	switch {
	case apierror.StatusOf(err) == http.StatusNotFound:
		return &computepb.Operation{Name: &name, Status: computepb.Operation_DONE.Enum()}, nil
	case err != nil:
		return nil, &engine.AskError{Err: apierror.Interrupted(ctx, err)}
	}
	return op, nil
}

// isOver reports whether an operation is over, and with which error. That stands in
// the operation; what the library makes of it has no code to go by.
func isOver(op *computepb.Operation) (bool, error) {
	if failures := op.GetError().GetErrors(); len(failures) > 0 {
		return true, failureOf(failures)
	}
	if op.GetStatus() != computepb.Operation_DONE {
		return false, nil
	}
	if status := int(op.GetHttpErrorStatusCode()); status >= 400 {
		return true, &googleapi.Error{Code: status, Message: op.GetHttpErrorMessage()}
	}
	return true, nil
}

// failureOf is the first of several errors, with the texts of all: the others
// are mostly the same again.
func failureOf(failures []*computepb.Errors) error {
	var texts []string
	for _, each := range failures {
		if text := each.GetMessage(); text != "" {
			texts = append(texts, text+familyOf(each))
		}
	}
	return &apierror.OperationError{Code: failures[0].GetCode(), Message: strings.Join(texts, "; ")}
}

// familyOf names the family of GPUs that an exceeded quota counts, of which only the
// details have the name; "" of other errors.
func familyOf(failure *computepb.Errors) string {
	for _, detail := range failure.GetErrorDetails() {
		if family := detail.GetQuotaInfo().GetDimensions()["gpu_family"]; family != "" {
			return " (gpu_family " + family + ")"
		}
	}
	return ""
}

// started is what a call that changes something has begun.
func started(op *compute.Operation, err error) (*computepb.Operation, error) {
	if err != nil {
		return nil, err
	}
	return op.Proto(), nil
}

// requestID is the same for the same stage of the same order: asked for twice,
// because the first answer was lost, it is made once. What is asked for is part of
// it, for the service does not check whether it is still the same.
func requestID(r engine.Order, s stage) *string {
	about, err := mark.Encode(r.Spec)
	if err != nil {
		return nil
	}
	return stagedID(r.ID, s, about)
}

// stagedID is a UUID that is made of these.
func stagedID(id string, s stage, about string) *string {
	space, err := uuid.Parse(id)
	if err != nil {
		return nil
	}
	return new(uuid.NewSHA1(space, []byte(string(s)+" "+about)).String())
}

// baseOf is the last part of a resource's path, which is its name.
func baseOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
