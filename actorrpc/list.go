package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/backoff"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// List finds the actors whose names begin with a prefix: those that the resolver
// knows or, where addresses are fixed, those of their servers.
func (c *Client) List(ctx context.Context, prefix string) ([]resolver.Endpoint, error) {
	if l, ok := c.resolver.(resolver.Lister); ok {
		return l.List(ctx, prefix)
	}
	endpoints, err := c.resolver.Resolve(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list actors: %w", err)
	}
	var found []resolver.Endpoint
	for _, e := range endpoints {
		actors, err := c.Actors(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, a := range actors {
			e.Name, e.Incarnation, e.Metadata = a.GetName(), a.GetIncarnation(), map[string]string{"class": a.GetClass()}
			found = append(found, e)
		}
	}
	return found, nil
}

// Actors asks a server what actors it has whose names begin with the endpoint's.
func (c *Client) Actors(ctx context.Context, e resolver.Endpoint) ([]*wire.Actor, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.ResolveTimeout)
	defer cancel()
	return insist(ctx, func() ([]*wire.Actor, error) {
		via, err := c.transports.reach(ctx, e)
		if err != nil {
			return nil, err
		}
		return via.actors(ctx, e.Name)
	})
}

// Methods asks an actor's server what methods it has.
func (c *Client) Methods(ctx context.Context, h Handle) ([]*wire.Method, error) {
	if h.actor == nil {
		return nil, ofNoActor("")
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.ResolveTimeout)
	defer cancel()
	return insist(ctx, func() ([]*wire.Method, error) {
		e, err := h.actor.find(ctx)
		if err != nil {
			return nil, err
		}
		via, err := c.transports.reach(ctx, e)
		if err != nil {
			h.actor.resolver.Forget(h.actor.key.name)
			return nil, err
		}
		listed, err := via.methods(ctx, e.Name)
		return listed.GetMethods(), err
	})
}

// insist asks until there is an answer. It asks again where the server could not be
// reached or is leaving, as one that does not know a new leader's authority yet breaks
// the connection, at any point of the handshake. Once ctx ends the error is the last
// server's.
func insist[T any](ctx context.Context, try func() (T, error)) (T, error) {
	var last error
	for failures := 1; ; failures++ {
		answer, err := try()
		switch {
		case err == nil || ctx.Err() != nil && last == nil:
			return answer, err
		case ctx.Err() != nil:
			return answer, last
		case !passing(err):
			return answer, err
		}
		last = err
		wait := time.NewTimer(backoff.After(failures))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return answer, last
		}
	}
}

// passing reports whether a question's error may be over when it is asked again.
func passing(err error) bool {
	e, ok := errors.AsType[*rpcerror.Error](err)
	return ok && (e.Code == rpcerror.CodeUnavailable || e.Code == rpcerror.CodeStopping)
}
