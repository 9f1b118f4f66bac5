package actorrpc

import (
	"runtime"
	"sync"
	"weak"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/internal/tasks"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// Client calls actors. It has one connection to each server, which all of its
// handles share; so a process needs one client, and its calls of an actor begin in
// the order in which it makes them. When an actor has moved, calls wait for those
// which its former place still has, unless these go on for longer than a silent server
// is listened to. It may be used by many goroutines at once.
type Client struct {
	config     Config // complete
	resolver   resolver.Resolver
	tasks      *tasks.Group
	transports *transports
	unwatch    func()
	closers    []func()

	mu     sync.Mutex                       // guards actors
	actors map[actorKey]weak.Pointer[actor] // gone with the last handle and call
}

// NewClient makes a client that finds actors by a resolver of names. Close ends it.
func NewClient(names resolver.Resolver, config Config) *Client {
	c := &Client{config: config.complete(), resolver: names, tasks: tasks.New(), actors: map[actorKey]weak.Pointer[actor]{}}
	c.transports = newTransports(shared{config: c.config, tasks: c.tasks, dial: dialTCP, room: wire.NewMemory(c.config.TransferMemory), shapes: new(codec.Shapes)})
	c.unwatch = names.Watch(c.moved)
	return c
}

// Close ends all connections. Calls without an answer fail.
func (c *Client) Close() error {
	grpcPeers := c.transports.close()
	c.unwatch()
	c.tasks.Close()
	for _, g := range grpcPeers {
		g.close()
	}
	c.tasks.Wait()
	for _, f := range c.closers {
		f()
	}
	return nil
}

// actor is the one of a key, which all handles of it share.
func (c *Client) actor(key actorKey, names resolver.Resolver) *actor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.actors[key].Value(); a != nil {
		return a
	}
	a := newActor(c.transports, key, names)
	c.actors[key] = weak.Make(a)
	runtime.AddCleanup(a, c.forget, key)
	return a
}

// forget is for an actor that has neither handles nor calls any more, unless it was made again.
func (c *Client) forget(key actorKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.actors[key].Value() == nil {
		delete(c.actors, key)
	}
}

// moved is for a name that the resolver has elsewhere now.
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
