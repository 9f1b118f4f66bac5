package actorrpc

import (
	"context"
	"errors"
	"runtime"
	"time"
	"weak"
)

const (
	// maxUnused is about how many addresses a client remembers, those in use aside.
	maxUnused = 128
	// unusedAfter is how long an address that was asked for last is not forgotten.
	unusedAfter = time.Minute
)

// errRetired is of a transport that was forgotten: another is to be asked for.
var errRetired = errors.New("the address was not used")

// actor is the one of a key, which all handles of it share.
func (c *Client) actor(key actorKey, resolver Resolver) *actor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.actors[key].Value(); a != nil {
		return a
	}
	a := newActor(c, key, resolver)
	c.actors[key] = weak.Make(a)
	runtime.AddCleanup(a, c.forget, key)
	return a
}

// forget is told that nobody has an actor any more, unless it was made again.
func (c *Client) forget(key actorKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.actors[key].Value() == nil {
		delete(c.actors, key)
	}
}

// moved is told by the resolver that a name is elsewhere.
func (c *Client) moved(name string) {
	c.mu.Lock()
	var affected []*actor
	for key, p := range c.actors {
		if a := p.Value(); a != nil && key.name == name && key.url == "" {
			affected = append(affected, a)
		}
	}
	c.mu.Unlock()
	for _, a := range affected {
		a.moved()
	}
}

// reach is a transport to an endpoint that is connected.
func (c *Client) reach(ctx context.Context, e Endpoint) (transport, error) {
	for {
		via, err := c.transport(e)
		if err != nil {
			return nil, err
		}
		if err := via.ready(ctx); !errors.Is(err, errRetired) {
			return via, err
		}
	}
}

// transport is what reaches an endpoint.
func (c *Client) transport(e Endpoint) (transport, error) {
	via, added, err := c.entry(e)
	if added {
		c.sweep()
	}
	return via, err
}

// entry is the transport of an address, and whether it is there since now.
func (c *Client) entry(e Endpoint) (via transport, added bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errClientClosed()
	}
	if e.GRPC {
		g, ok := c.generals[e.Address]
		if !ok {
			if g, err = newGeneral(c, e.Address); err != nil {
				return nil, false, err
			}
			c.generals[e.Address] = g
		}
		g.asked = time.Now()
		return g, !ok, nil
	}
	s, ok := c.servers[e.Address]
	if !ok {
		s = newServer(c, e.Address)
		c.servers[e.Address] = s
	}
	s.asked = time.Now()
	return s, !ok, nil
}

// sweep forgets addresses that nobody uses, if there are many. It is called when there
// is a new one, so that they cannot pile up.
func (c *Client) sweep() {
	c.mu.Lock()
	var old []interface{ retire() }
	if limit := time.Now().Add(-unusedAfter); len(c.servers)+len(c.generals) > maxUnused {
		for _, s := range c.servers {
			if s.asked.Before(limit) {
				old = append(old, s)
			}
		}
		for _, g := range c.generals {
			if g.asked.Before(limit) {
				old = append(old, g)
			}
		}
	}
	c.mu.Unlock()
	for _, entry := range old {
		entry.retire()
	}
}

// retire has the client forget the server, unless it has a connection or calls.
func (s *server) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil || s.flight != nil || s.window.open > 0 || len(s.waiting) > 0 {
		return
	}
	s.retired = true
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	delete(s.client.servers, s.address)
}

// retire has the client forget the address, unless it has calls.
func (g *general) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sent) > 0 {
		return
	}
	g.retired = true
	g.close()
	g.client.mu.Lock()
	defer g.client.mu.Unlock()
	if g.client.generals != nil {
		delete(g.client.generals, g.address)
	}
}
