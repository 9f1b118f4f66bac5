package resolver

import (
	"context"
	"errors"
	"slices"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Fixed finds every name at the addresses that it was given, and names of
// URLs at theirs only.
type Fixed struct{ endpoints []Endpoint }

var _ Resolver = (*Fixed)(nil)

// NewFixed makes a resolver of addresses: host:port, actor://host:port/name
// or grpc://host:port/name. The last that serves a name is preferred.
func NewFixed(addresses ...string) (*Fixed, error) {
	r := &Fixed{}
	for _, a := range addresses {
		e, err := ParseURL(a)
		if err != nil {
			return nil, err
		}
		r.endpoints = append(r.endpoints, e)
	}
	if len(r.endpoints) == 0 {
		return nil, errors.New("a fixed resolver needs an address")
	}
	return r, nil
}

// Resolve asks no server: whether the actor is there is not known.
func (r *Fixed) Resolve(_ context.Context, name string) ([]Endpoint, error) {
	var found []Endpoint
	var near []string
	for _, e := range r.endpoints {
		if e.Name == "" || e.Name == name {
			e.Name = name
			found = append(found, e)
		} else if !slices.Contains(near, e.Name) {
			near = append(near, e.Name)
		}
	}
	if len(found) == 0 {
		return nil, rpcerror.UnknownActorOf(name, near)
	}
	return found, nil
}

// Forget does nothing: addresses are fixed.
func (r *Fixed) Forget(string) {}

// Watch does nothing: addresses are fixed.
func (r *Fixed) Watch(func(string)) func() { return func() {} }
