package actorrpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/backoff"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Lookup finds the actor of a name, the newest if there are many. Without one the
// error is of [CodeUnknownActor]. Where addresses are fixed no server is asked.
func (c *Client) Lookup(ctx context.Context, name string) (Handle, error) {
	endpoints, err := c.resolver.Resolve(ctx, name)
	if err != nil {
		return Handle{}, fmt.Errorf("look up %q: %w", name, err)
	}
	return c.handle(actorKey{name: name}, endpoints[len(endpoints)-1]), nil
}

// LookupAll finds all actors that share a name. Each handle stays with one of
// them: with its job's task, or its address.
func (c *Client) LookupAll(ctx context.Context, name string) ([]Handle, error) {
	endpoints, err := c.resolver.Resolve(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("look up %q: %w", name, err)
	}
	return c.members(name, endpoints), nil
}

func (c *Client) members(name string, endpoints []resolver.Endpoint) []Handle {
	handles := make([]Handle, 0, len(endpoints))
	for _, e := range endpoints {
		h := c.handle(actorKey{name: name, member: e.Member}, e)
		if !slices.Contains(handles, h) {
			handles = append(handles, h)
		}
	}
	return handles
}

func (c *Client) handle(key actorKey, e resolver.Endpoint) Handle {
	key.namespace = cmp.Or(c.config.Namespace, e.Namespace)
	a := c.actor(key, c.resolver)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.endpoint.Address == "" {
		a.endpoint = e
	}
	a.lastResolved = e
	return Handle{client: c, actor: a}
}

// wasAt notes where a reference had the actor, so that it is known to have been there.
func (a *actor) wasAt(e resolver.Endpoint) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lastResolved.Address == "" {
		a.lastResolved = e
	}
}

// Handle is the actor of a reference, which need not be there yet. One with a URL
// and without a namespace is of the actor at that address and of no other.
func (c *Client) Handle(ref codec.ActorRef) (Handle, error) {
	mine := c.config.Namespace
	switch {
	case ref.Name == "":
		return Handle{}, &rpcerror.Error{Code: rpcerror.CodeBadArguments, Message: "the actor reference has no name"}
	case ref.Namespace != "" && mine != "" && ref.Namespace != mine:
		return Handle{}, &rpcerror.Error{Code: rpcerror.CodeDenied, Actor: ref.Name, Message: fmt.Sprintf("it is of namespace %q, this program of %q", ref.Namespace, mine)}
	case ref.URL == "" || ref.Namespace != "" && mine != "":
		key := actorKey{name: ref.Name, namespace: cmp.Or(ref.Namespace, mine), member: ref.Member}
		a := c.actor(key, c.resolver)
		if was, err := resolver.ParseURL(ref.URL); err == nil {
			a.wasAt(was)
		}
		return Handle{client: c, actor: a}, nil
	}
	e, err := resolver.ParseURL(ref.URL)
	if err != nil {
		return Handle{}, err
	}
	e.Name, e.Member = cmp.Or(e.Name, ref.Name), cmp.Or(ref.Member, e.Member)
	key := actorKey{name: ref.Name, namespace: ref.Namespace, url: e.URL(), member: ref.Member}
	return Handle{client: c, actor: c.actor(key, pinned{e})}, nil
}

// pinned finds one name at one place.
type pinned struct{ endpoint resolver.Endpoint }

func (p pinned) Resolve(context.Context, string) ([]resolver.Endpoint, error) {
	return []resolver.Endpoint{p.endpoint}, nil
}

func (p pinned) Forget(string) {}

func (p pinned) Watch(func(string)) func() { return func() {} }

var _ resolver.Resolver = pinned{}

// WaitFor waits until there is an actor of a name, for ResolveTimeout at most.
func (c *Client) WaitFor(ctx context.Context, name string) (Handle, error) {
	endpoints, err := c.await(ctx, resolver.Group{Name: name})
	if err != nil {
		return Handle{}, fmt.Errorf("wait for %q: %w", name, err)
	}
	return c.handle(actorKey{name: name}, endpoints[len(endpoints)-1]), nil
}

// WaitForGroup waits until so many actors share a name, for ResolveTimeout at most.
// It fails at once when the group's job has ended.
func (c *Client) WaitForGroup(ctx context.Context, g resolver.Group) ([]Handle, error) {
	endpoints, err := c.await(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("wait for %q: %w", g.Name, err)
	}
	return c.members(g.Name, endpoints), nil
}

func (c *Client) await(ctx context.Context, g resolver.Group) ([]resolver.Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.ResolveTimeout)
	defer cancel()
	g.Count = max(g.Count, 1)
	if r, ok := c.resolver.(resolver.Awaiter); ok {
		return r.Await(ctx, g)
	}
	changed := make(chan struct{}, 1)
	defer c.resolver.Watch(func(name string) {
		if name == g.Name {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})()
	for failures := 1; ; failures++ {
		endpoints, err := c.resolver.Resolve(ctx, g.Name)
		if err == nil && len(endpoints) >= g.Count {
			return endpoints, nil
		}
		timer := time.NewTimer(backoff.After(failures))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, resolver.MissingError(err, len(endpoints), g.Count)
		}
		timer.Stop()
	}
}
