package actorrpc

import (
	"context"
	"errors"
	"slices"
)

// FixedResolver finds every name at the addresses that it was given, and names of
// URLs at theirs only.
type FixedResolver struct{ endpoints []Endpoint }

var _ Resolver = (*FixedResolver)(nil)

// NewFixedResolver makes a resolver of addresses: host:port, actor://host:port/name
// or grpc://host:port/name. The last that serves a name is preferred.
func NewFixedResolver(addresses ...string) (*FixedResolver, error) {
	r := &FixedResolver{}
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

// Resolve asks nobody: whether the actor is there is not known.
func (r *FixedResolver) Resolve(_ context.Context, name string) ([]Endpoint, error) {
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
		return nil, unknownActor(name, near)
	}
	return found, nil
}

// Forget does nothing: addresses are fixed.
func (r *FixedResolver) Forget(string) {}

// Watch does nothing: addresses are fixed.
func (r *FixedResolver) Watch(func(string)) func() { return func() {} }
