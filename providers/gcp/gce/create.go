package gce

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Create asks for an instance, or for the parts of a group.
func (g *Engine) Create(ctx context.Context, r engine.Order) (string, error) {
	if g.isGoing(r.Spec.Name) {
		return "", apierror.Errorf(schema.ErrorUnavailable, "what had its name before is still being deleted")
	}
	if r.Spec.Hosts > 1 {
		return g.createGroup(ctx, r)
	}
	machine, err := g.instance(r)
	if err != nil {
		return "", err
	}
	other, found, err := g.findTemplate(ctx, r.Spec.Name)
	if err != nil {
		return "", err
	}
	if found {
		return "", isTaken("instance template", other.Name)
	}
	op, err := g.order(ctx, "create instance", computeapi.Change{
		Method: http.MethodPost, Path: instancePath(r.Spec.Zone), Body: machine, RequestID: requestID(r, stageInstance),
	})
	switch {
	case apierror.StatusOf(err) == http.StatusConflict:
		return "", g.adoptInstance(ctx, r.Spec, err)
	case err != nil:
		return "", err
	}
	if over, err := isOver(op); over {
		return "", err
	}
	return step(stageInstance, op), nil
}

// adoptInstance checks that the instance in the way is the slice itself.
func (g *Engine) adoptInstance(ctx context.Context, spec schema.SliceSpec, inTheWay error) error {
	there, found, err := g.findInstance(ctx, spec.Zone, spec.Name)
	switch {
	case err != nil:
		return err
	case !found:
		return apierror.Errorf(schema.ErrorUnavailable, "it was there a moment ago and is not now: %w", inTheWay)
	}
	return sameSlice(instanceMarks(there), spec)
}

// sameSlice checks that what is there is the slice that is asked for, but for
// what can be changed in place.
func sameSlice(there mark.Marks, spec schema.SliceSpec) error {
	switch {
	case !there.Owned(""):
		return apierror.Errorf(schema.ErrorConflict, "something that is not fray's has the name %s in %s", there.Name, there.Zone)
	case !there.Owned(spec.Stack):
		return apierror.Errorf(schema.ErrorConflict, "the stack %s has a slice of that name in %s", there.Labels[mark.StackLabel], there.Zone)
	}
	got, err := there.Spec()
	if err != nil {
		return apierror.Errorf(schema.ErrorConflict, "what has the name %s in %s cannot be read: %w", there.Name, there.Zone, err)
	}
	if got.Fixed() != spec.Fixed() {
		return apierror.Errorf(schema.ErrorConflict, "a slice of that name in %s has another shape", there.Zone)
	}
	return nil
}

func isTaken(what, name string) error {
	return apierror.Errorf(schema.ErrorConflict, "there is an %s of the name %s: it is, or is part of, a slice of another shape", what, name)
}

// Poll asks for the operation that is open, and begins what comes after it.
func (g *Engine) Poll(ctx context.Context, r engine.Order, operation string) (string, error) {
	word, name, _ := strings.Cut(operation, "/")
	s := stage(word)
	g.noted(r.Spec.Name, func(n *note) {
		n.stack, n.zone = r.Spec.Stack, r.Spec.Zone // by which it is forgotten
		if !n.askedAt.IsZero() {
			n.askedAt = g.now()
		}
	})
	op, err := g.operation(ctx, r.Spec, s, name)
	if err != nil {
		return operation, err
	}
	over, err := isOver(op)
	switch {
	case err != nil:
		return "", g.groupFailed(r.Spec, s, fmt.Errorf("%s of it: %w", s.making(), err))
	case !over:
		return operation, nil
	}
	switch s {
	case stageInstance:
		return "", nil
	case stageUpdate:
		return g.Update(ctx, r)
	case stageTemplate, stagePolicy, stageGroup, stageResize:
	}
	return g.groupFrom(ctx, r, s.next())
}

// making returns what a stage does.
func (s stage) making() string {
	if s == stageUpdate {
		return "the change"
	}
	return "the making of the " + string(s)
}

// next is the stage after one of a group's, "" after the last.
func (s stage) next() stage {
	switch s {
	case stageTemplate:
		return stagePolicy
	case stagePolicy:
		return stageGroup
	case stageGroup:
		return stageResize
	case stageInstance, stageResize, stageUpdate:
	}
	return ""
}

// createGroup makes a slice of several machines, or goes on with one that was
// left unfinished.
func (g *Engine) createGroup(ctx context.Context, r engine.Order) (string, error) {
	if shape, err := accelerators.Parse(r.Spec.TPU); err == nil && shape.Hosts != r.Spec.Hosts {
		// Something of that name with this shape cannot be there: it could not be made.
		if _, found, err := g.findTemplate(ctx, r.Spec.Name); err != nil || !found {
			return "", errors.Join(err, apierror.Errorf(schema.ErrorInvalid, "%s has %d hosts, not %d", shape.Type, shape.Hosts, r.Spec.Hosts))
		}
	}
	other, found, err := g.findInstance(ctx, r.Spec.Zone, r.Spec.Name)
	if err != nil {
		return "", err
	}
	if found {
		return "", isTaken("instance", other.Name)
	}
	return g.groupFrom(ctx, r, stageTemplate)
}

// groupFrom begins one stage after another until one takes time, and returns the
// last operation; "" if everything was there.
func (g *Engine) groupFrom(ctx context.Context, r engine.Order, s stage) (string, error) {
	g.noted(r.Spec.Name, func(n *note) { n.stack, n.zone, n.askedAt, n.failed = r.Spec.Stack, r.Spec.Zone, g.now(), nil })
	last := ""
	for ; s != ""; s = s.next() {
		op, err := g.begin(ctx, r, s)
		if err != nil {
			return "", g.groupFailed(r.Spec, s, err)
		}
		if op == nil {
			continue // it was there, or is not needed
		}
		last = step(s, op)
		over, err := isOver(op)
		if !over {
			// Many are done by now; the others are asked for with the next call.
			if op, err = g.operation(ctx, r.Spec, s, op.Name); err != nil {
				return last, nil
			}
			over, err = isOver(op)
		}
		switch {
		case err != nil:
			return "", g.groupFailed(r.Spec, s, err)
		case !over:
			return last, nil
		}
	}
	g.noted(r.Spec.Name, func(n *note) { n.askedAt = time.Time{} })
	return last, nil
}

// groupFailed notes why the making of a group has ended, if it has: its parts are
// listed as a dead slice then, to be deleted.
func (g *Engine) groupFailed(spec schema.SliceSpec, s stage, err error) error {
	if s == stageInstance || s == stageUpdate {
		return err
	}
	switch apierror.KindOf(err) {
	case schema.ErrorUnavailable, schema.ErrorRate:
		return err
	case schema.ErrorConflict:
		if s == stageTemplate {
			return err // what there is, is not this slice's
		}
	case schema.ErrorCapacity, schema.ErrorQuota, schema.ErrorReservation, schema.ErrorPreempted, schema.ErrorInvalid, schema.ErrorPermission:
	}
	g.noted(spec.Name, func(n *note) { n.failed, n.askedAt = err, time.Time{} })
	return err
}
