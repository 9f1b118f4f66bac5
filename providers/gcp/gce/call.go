package gce

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/api/googleapi"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// ask calls once, within the time that a call may take.
// The error is that of the service, after what was asked for.
func ask[T any](ctx context.Context, what string, call func(context.Context) (*T, error)) (*T, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	answer, err := call(bounded)
	if err != nil {
		return nil, apierror.Interrupted(ctx, &computeCallError{what: what, err: err})
	}
	return answer, nil
}

// order asks once for a change, and returns the operation that it has begun.
func (g *api) order(ctx context.Context, what string, change computeapi.Change) (*computeapi.Operation, error) {
	return ask(ctx, what, func(ctx context.Context) (*computeapi.Operation, error) { return g.client.Begin(ctx, change) })
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
func lookup[T any](ctx context.Context, g *api, what string, path computeapi.Path) (resource *T, found bool, err error) {
	err = again(ctx, g.reader, func() error {
		resource, err = ask(ctx, what, func(ctx context.Context) (*T, error) { return computeapi.Get[T](ctx, g.client, path, nil) })
		return err
	})
	if apierror.StatusOf(err) == http.StatusNotFound {
		return nil, false, nil
	}
	return resource, err == nil, err
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
func step(s stage, op *computeapi.Operation) string { return string(s) + "/" + op.Name }

// operation asks once how an operation stands. One that the service has forgotten has ended.
func (g *api) operation(ctx context.Context, spec schema.SliceSpec, s stage, name string) (*computeapi.Operation, error) {
	path := zonal(spec.Zone, "operations", name)
	switch s {
	case stageTemplate:
		path = computeapi.Path{"global", "operations", name}
	case stagePolicy:
		path = computeapi.Path{"regions", accelerators.RegionOf(spec.Zone), "operations", name}
	case stageInstance, stageGroup, stageResize, stageUpdate:
	}
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	op, err := computeapi.Get[computeapi.Operation](bounded, g.client, path, nil)
	switch {
	case apierror.StatusOf(err) == http.StatusNotFound:
		return &computeapi.Operation{Name: name, Status: computeapi.OperationDone}, nil
	case err != nil:
		return nil, &engine.AskError{Err: apierror.Interrupted(ctx, err)}
	}
	return op, nil
}

// isOver reports whether an operation is over, and with which error.
func isOver(op *computeapi.Operation) (bool, error) {
	if failures := op.Error.Errors; len(failures) > 0 {
		return true, failureOf(failures)
	}
	if op.Status != computeapi.OperationDone {
		return false, nil
	}
	if status := int(op.HTTPErrorStatusCode); status >= 400 {
		return true, &googleapi.Error{Code: status, Message: op.HTTPErrorMessage}
	}
	return true, nil
}

// failureOf is the first of several errors, with the texts of all: the others
// are mostly the same again.
func failureOf(failures []computeapi.Error) error {
	var texts []string
	for _, each := range failures {
		if text := each.Message; text != "" {
			texts = append(texts, text+familyOf(each))
		}
	}
	return &apierror.OperationError{Code: failures[0].Code, Message: strings.Join(texts, "; ")}
}

// familyOf names the family of GPUs that an exceeded quota counts, of which only the
// details have the name; "" of other errors.
func familyOf(failure computeapi.Error) string {
	for _, detail := range failure.ErrorDetails {
		if family := detail.QuotaInfo.Dimensions["gpu_family"]; family != "" {
			return " (gpu_family " + family + ")"
		}
	}
	return ""
}

// requestID is the same for the same stage of the same order: asked for twice,
// because the first answer was lost, it is made once. What is asked for is part of
// it, for the service does not check whether it is still the same.
func requestID(r engine.Order, s stage) string {
	about, err := mark.Encode(r.Spec)
	if err != nil {
		return ""
	}
	return stagedID(r.ID, s, about)
}

// stagedID is a UUID that is made of these.
func stagedID(id string, s stage, about string) string {
	space, err := uuid.Parse(id)
	if err != nil {
		return ""
	}
	return uuid.NewSHA1(space, []byte(string(s)+" "+about)).String()
}

// baseOf is the last part of a resource's path, which is its name.
func baseOf(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
