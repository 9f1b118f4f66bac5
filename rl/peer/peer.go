// Package peer calls the other actors of a run: one, or many at once. Start with Peers.
package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Peers calls the other actors of a run.
type Peers interface {
	// Call calls a method of an actor, whose result is a tree of package codec, or a value of a type of Go.
	Call(ctx context.Context, actor, method string, args ...any) (any, error)
	// Incarnations are the processes' of all actors that are there, by name.
	Incarnations(ctx context.Context) (map[string]string, error)
}

// remotePeers calls by a client.
type remotePeers struct {
	client *actorrpc.Client

	mu      sync.Mutex
	handles map[string]actorrpc.Handle
}

var _ Peers = (*remotePeers)(nil)

// Of calls the actors of a client's namespace.
func Of(client *actorrpc.Client) Peers {
	return &remotePeers{client: client, handles: map[string]actorrpc.Handle{}}
}

func (p *remotePeers) handle(name string) (actorrpc.Handle, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h, ok := p.handles[name]; ok {
		return h, nil
	}
	h, err := p.client.Handle(codec.ActorRef{Name: name})
	if err != nil {
		return actorrpc.Handle{}, fmt.Errorf("%s: %w", name, err)
	}
	p.handles[name] = h
	return h, nil
}

func (p *remotePeers) Call(ctx context.Context, actor, method string, args ...any) (any, error) {
	h, err := p.handle(actor)
	if err != nil {
		return nil, err
	}
	return actorrpc.Call[any](ctx, h, method, args...)
}

func (p *remotePeers) Incarnations(ctx context.Context) (map[string]string, error) {
	found, err := p.client.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list actors: %w", err)
	}
	incarnations := make(map[string]string, len(found))
	for _, endpoint := range found {
		incarnations[endpoint.Name] = endpoint.Incarnation
	}
	return incarnations, nil
}

// Ask calls a method whose result is of a type.
func Ask[R any](ctx context.Context, p Peers, actor, method string, args ...any) (R, error) {
	var result R
	got, err := p.Call(ctx, actor, method, args...)
	if err != nil {
		return result, fmt.Errorf("%s.%s: %w", actor, method, err)
	}
	if typed, ok := got.(R); ok {
		return typed, nil
	}
	data, buffers, err := codec.EncodeResult(codec.Msgpack, got)
	if err == nil {
		err = codec.DecodeResult(codec.Msgpack, data, buffers, codec.DefaultMemory, &result)
	}
	if err != nil {
		return result, fmt.Errorf("%s.%s: %w", actor, method, err)
	}
	return result, nil
}

// CallAll calls a method of actors at once, and returns the errors of those that failed, by name.
func CallAll(ctx context.Context, p Peers, actors []string, method string, args ...any) map[string]error {
	var mu sync.Mutex
	failed := map[string]error{}
	var calls sync.WaitGroup
	for _, name := range actors {
		calls.Go(func() {
			if _, err := p.Call(ctx, name, method, args...); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[name] = err
			}
		})
	}
	calls.Wait()
	return failed
}

// PartsError is that not all actors did what was asked of them.
type PartsError struct {
	Method string
	Failed map[string]error // by actor
}

func (e *PartsError) Error() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.Failed)) {
		fmt.Fprintf(&text, "; %s.%s: %v", name, e.Method, e.Failed[name])
	}
	return strings.TrimPrefix(text.String(), "; ")
}

// Unwrap are the errors, in the order of the actors' names.
func (e *PartsError) Unwrap() []error {
	all := make([]error, 0, len(e.Failed))
	for _, name := range slices.Sorted(maps.Keys(e.Failed)) {
		all = append(all, e.Failed[name])
	}
	return all
}

// ErrorOf is a PartsError of those that failed, nil if none did.
func ErrorOf(method string, failed map[string]error) error {
	if len(failed) == 0 {
		return nil
	}
	return &PartsError{Method: method, Failed: failed}
}

// Raised reports whether an error is one that a method returned or raised, so that a repetition meets it again.
func Raised(err error) bool {
	e, ok := errors.AsType[*rpcerror.Error](err)
	return ok && e.Code == rpcerror.CodeApplication
}
