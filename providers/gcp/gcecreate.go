package gcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/schema"
)

func (g *gce) create(ctx context.Context, r order) (string, error) {
	if g.isGoing(r.spec.Name) {
		return "", failf(schema.ErrorUnavailable, "what had its name before is still being deleted")
	}
	if r.spec.Hosts > 1 {
		return g.createGroup(ctx, r)
	}
	machine, err := g.instance(r)
	if err != nil {
		return "", err
	}
	other, found, err := g.findTemplate(ctx, r.spec.Name)
	if err != nil {
		return "", err
	}
	if found {
		return "", isTaken("instance template", other.GetName())
	}
	op, err := started(ask(ctx, "create instance", g.clients.instances.Insert, &computepb.InsertInstanceRequest{
		Project: g.project, Zone: r.spec.Zone, InstanceResource: machine, RequestId: requestID(r, stageInstance),
	}))
	switch {
	case statusOf(err) == http.StatusConflict:
		return "", g.adoptInstance(ctx, r.spec, err)
	case err != nil:
		return "", err
	}
	if over, err := isOver(op); over {
		return "", err
	}
	return step(stageInstance, op), nil
}

// adoptInstance checks that the instance in the way is the slice itself.
func (g *gce) adoptInstance(ctx context.Context, spec schema.SliceSpec, inTheWay error) error {
	there, found, err := g.findInstance(ctx, spec.Zone, spec.Name)
	switch {
	case err != nil:
		return err
	case !found:
		return failf(schema.ErrorUnavailable, "it was there a moment ago and is not now: %w", inTheWay)
	}
	return sameSlice(instanceMarks(there), spec)
}

// sameSlice checks that what is there is the slice that is asked for, but for
// what can be changed in place.
func sameSlice(there marks, spec schema.SliceSpec) error {
	switch {
	case !there.owned(""):
		return failf(schema.ErrorConflict, "something that is not fray's has the name %s in %s", there.name, there.zone)
	case !there.owned(spec.Stack):
		return failf(schema.ErrorConflict, "the stack %s has a slice of that name in %s", there.labels[stackLabel], there.zone)
	}
	got, err := there.spec()
	if err != nil {
		return failf(schema.ErrorConflict, "what has the name %s in %s cannot be read: %w", there.name, there.zone, err)
	}
	if got.Fixed() != spec.Fixed() {
		return failf(schema.ErrorConflict, "a slice of that name in %s has another shape", there.zone)
	}
	return nil
}

func isTaken(what, name string) error {
	return failf(schema.ErrorConflict, "there is an %s of the name %s: it is, or is part of, a slice of another shape", what, name)
}

// poll asks for the operation that is open, and begins what comes after it.
func (g *gce) poll(ctx context.Context, r order, operation string) (string, error) {
	word, name, _ := strings.Cut(operation, "/")
	s := stage(word)
	g.noted(r.spec.Name, func(n *gceNote) {
		n.stack, n.zone = r.spec.Stack, r.spec.Zone // by which it is forgotten
		if !n.askedAt.IsZero() {
			n.askedAt = g.now()
		}
	})
	op, err := g.operation(ctx, r.spec, s, name)
	if err != nil {
		return operation, err
	}
	over, err := isOver(op)
	switch {
	case err != nil:
		return "", g.groupFailed(r.spec, s, fmt.Errorf("%s of it: %w", s.making(), err))
	case !over:
		return operation, nil
	}
	switch s {
	case stageInstance:
		return "", nil
	case stageUpdate:
		return g.update(ctx, r)
	case stageTemplate, stagePolicy, stageGroup, stageResize:
	}
	return g.groupFrom(ctx, r, s.next())
}

// making says what a stage does.
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
func (g *gce) createGroup(ctx context.Context, r order) (string, error) {
	if shape, err := schema.ParseAccelerator(r.spec.TPU); err == nil && shape.Hosts != r.spec.Hosts {
		// Something of that name with this shape cannot be there: it could not be made.
		if _, found, err := g.findTemplate(ctx, r.spec.Name); err != nil || !found {
			return "", errors.Join(err, failf(schema.ErrorInvalid, "%s has %d hosts, not %d", shape.Type, shape.Hosts, r.spec.Hosts))
		}
	}
	other, found, err := g.findInstance(ctx, r.spec.Zone, r.spec.Name)
	if err != nil {
		return "", err
	}
	if found {
		return "", isTaken("instance", other.GetName())
	}
	return g.groupFrom(ctx, r, stageTemplate)
}

// groupFrom begins one stage after another until one takes time, and returns the
// last operation; "" if everything was there.
func (g *gce) groupFrom(ctx context.Context, r order, s stage) (string, error) {
	g.noted(r.spec.Name, func(n *gceNote) { n.stack, n.zone, n.askedAt, n.failed = r.spec.Stack, r.spec.Zone, g.now(), nil })
	last := ""
	for ; s != ""; s = s.next() {
		op, err := g.begin(ctx, r, s)
		if err != nil {
			return "", g.groupFailed(r.spec, s, err)
		}
		if op == nil {
			continue // it was there, or is not needed
		}
		last = step(s, op)
		over, err := isOver(op)
		if !over {
			// Many are done by now; the others are asked for with the next call.
			if op, err = g.operation(ctx, r.spec, s, op.GetName()); err != nil {
				return last, nil
			}
			over, err = isOver(op)
		}
		switch {
		case err != nil:
			return "", g.groupFailed(r.spec, s, err)
		case !over:
			return last, nil
		}
	}
	g.noted(r.spec.Name, func(n *gceNote) { n.askedAt = time.Time{} })
	return last, nil
}

// groupFailed notes why the making of a group has ended, if it has: its parts are
// listed as a dead slice then, to be deleted.
func (g *gce) groupFailed(spec schema.SliceSpec, s stage, err error) error {
	if s == stageInstance || s == stageUpdate {
		return err
	}
	switch kindOfError(err) {
	case schema.ErrorUnavailable, schema.ErrorRate:
		return err
	case schema.ErrorConflict:
		if s == stageTemplate {
			return err // what there is, is not this slice's
		}
	case schema.ErrorCapacity, schema.ErrorQuota, schema.ErrorReservation, schema.ErrorPreempted, schema.ErrorInvalid, schema.ErrorPermission:
	}
	g.noted(spec.Name, func(n *gceNote) { n.failed, n.askedAt = err, time.Time{} })
	return err
}
