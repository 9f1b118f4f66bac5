package tpu

import (
	"context"

	"github.com/google/uuid"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Delete reads what is there and whose it is, and asks for it to go: a queued
// resource with its node, or a node alone. What is going already is let go.
func (t *Engine) Delete(ctx context.Context, stack string, at engine.Place) error {
	s, err := t.lookup(ctx, at)
	if err != nil || s == nil {
		return err
	}
	if err := s.mine(stack); err != nil {
		return err
	}
	if s.queued != nil {
		return t.deleteQueued(ctx, s)
	}
	return t.deleteNode(ctx, s)
}

// mine rejects what has not the stack's mark in all that there is of it.
func (s *slice) mine(stack string) error {
	for _, part := range []struct {
		what  string
		there bool
		node  *tpuapi.Node
	}{
		{"node", s.node != nil, s.node},
		// That of a node which was imported cannot be marked: the node states whose it is.
		{"queued resource", s.queued != nil && (s.node == nil || s.asked().GetLabels()[mark.StackLabel] != ""), s.asked()},
	} {
		if mark := part.node.GetLabels()[mark.StackLabel]; part.there && mark != stack {
			return apierror.Errorf(schema.ErrorPermission, "the %s of this name in %s has not the mark of stack %s but %q; it is left alone",
				part.what, s.at.Zone, stack, mark)
		}
	}
	return nil
}

// deleteQueued asks again for what is going while its node is not: without
// force it waits until that is deleted.
func (t *Engine) deleteQueued(ctx context.Context, s *slice) error {
	stays := s.node != nil && s.node.GetState() != tpuapi.Node_DELETING
	if s.queued.GetState().GetState() == tpuapi.QueuedResourceState_DELETING && !stays {
		return nil
	}
	name := t.queuedName(s.at)
	_, err := invoke(ctx, call{"delete queued resource", "name", name}, t.API.DeleteQueuedResource, &tpuapi.DeleteQueuedResourceRequest{
		Name: name, RequestId: uuid.NewString(), Force: true,
	})
	if isNotFound(err) {
		return nil
	}
	return err
}

func (t *Engine) deleteNode(ctx context.Context, s *slice) error {
	if s.node.GetState() == tpuapi.Node_DELETING {
		return nil
	}
	name := t.nodeName(s.at)
	_, err := invoke(ctx, call{"delete node", "name", name}, t.API.DeleteNode, &tpuapi.DeleteNodeRequest{Name: name, RequestId: uuid.NewString()})
	if isNotFound(err) {
		return nil
	}
	return err
}
