package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// dataReader reads what data blocks name: the states of stacks, once each, and
// what providers offer.
type dataReader struct {
	ctx      context.Context
	here     site
	patience time.Duration // how long a stack may take to be read; 0: as long as it takes

	mu     sync.Mutex
	stacks map[schema.StackRef]*readStack
}

var _ schema.Reader = (*dataReader)(nil)

type readStack struct {
	doc    *state.Document
	sealer schema.Sealer
	where  location
}

// data reads for the configuration of a source. What is wrong with its settings
// is told by its evaluation.
func data(ctx context.Context, src *schema.Source, at site, local bool) *dataReader {
	at.settings, _ = src.Settings(local)
	return &dataReader{ctx: ctx, here: at, stacks: map[schema.StackRef]*readStack{}}
}

// anew reads everything again.
func (r *dataReader) anew(ctx context.Context) *dataReader {
	return &dataReader{ctx: ctx, here: r.here, patience: r.patience, stacks: map[schema.StackRef]*readStack{}}
}

func (r *dataReader) Outputs(of schema.StackRef) (map[string]schema.DataOutput, error) {
	s, err := r.stack(of)
	if err != nil {
		return nil, err
	}
	found := make(map[string]schema.DataOutput, len(s.doc.Outputs))
	for name, o := range s.doc.Outputs {
		if o.Unknown {
			continue // of an apply that did not get that far
		}
		value, err := outputValue(o, s.sealer)
		if err != nil {
			return nil, fmt.Errorf("read output %s of %s: %w", name, s.where, err)
		}
		found[name] = schema.DataOutput{JSON: value, Sensitive: o.Sensitive}
	}
	return found, nil
}

func (r *dataReader) Reservation(of schema.StackRef, name string) (schema.ReservationData, error) {
	s, err := r.stack(of)
	if err != nil {
		return schema.ReservationData{}, err
	}
	addr := schema.ScopedAddress(schema.KindReservation, name)
	pool := s.doc.Resources[addr].Reservation
	if pool == nil {
		return schema.ReservationData{}, fmt.Errorf("the stack in %s has no %s%s", s.where, addr, didYouMean(addr.String(), s.doc, nil))
	}
	d := schema.ReservationData{Provider: pool.Provider, Shape: pool.Min, Max: pool.Max.Slices, Preemptible: pool.Preemptible}
	for name, slice := range s.doc.Slices {
		if slice.Spec.Owner == addr && slice.Seen && slice.Terminating.IsZero() {
			d.Slices = append(d.Slices, name)
		}
	}
	slices.Sort(d.Slices)
	used := map[string]bool{}
	for _, j := range s.doc.Jobs {
		if j.Spec.Resources.Reservation != name {
			continue
		}
		for _, held := range j.Slices {
			if guest := s.doc.Slices[held]; guest != nil && guest.Spec.On != "" {
				held = guest.Spec.On // it has a part of that one
			}
			used[held] = true
		}
	}
	d.Allocated = len(used)
	return d, nil
}

func (r *dataReader) Accelerators(q schema.AcceleratorQuery) ([]schema.Offer, error) {
	return schema.Offers(q), nil
}

func (r *dataReader) bounded() (context.Context, context.CancelFunc) {
	if r.patience == 0 {
		return context.WithCancel(r.ctx)
	}
	return context.WithTimeoutCause(r.ctx, r.patience, fmt.Errorf("it took longer than %s", r.patience))
}

// stack opens the state of a stack; that of the configuration itself is read as
// any other.
func (r *dataReader) stack(of schema.StackRef) (*readStack, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.stacks[of]; s != nil {
		return s, nil
	}
	at := r.here
	switch {
	case of.Bucket != "":
		at.settings = schema.Settings{Backend: schema.Backend{Kind: schema.BackendGCS, Bucket: of.Bucket, Prefix: of.Prefix}}
	case of.Path != "":
		at.settings = schema.Settings{Backend: schema.Backend{Kind: schema.BackendLocal, Path: of.Path}}
	}
	if of.Bucket != "" || of.Path != "" || of.Workspace != "" {
		at = at.in(schema.DefaultWorkspace)
	}
	if of.Workspace != "" {
		at = at.in(of.Workspace)
	}
	ctx, cancel := r.bounded()
	defer cancel()
	opened, err := openStack(ctx, at, false)
	if err != nil {
		return nil, err
	}
	doc, err := opened.load(ctx)
	if err != nil {
		return nil, err
	}
	other := of != schema.StackRef{}
	if opened.fresh && other {
		return nil, fmt.Errorf("there is no stack in %s; run fray apply there first", opened.at)
	}
	sealer, err := opened.sealer(r.ctx, doc, false)
	if err != nil {
		return nil, err
	}
	s := &readStack{doc: doc, sealer: sealer, where: opened.at}
	r.stacks[of] = s
	return s, nil
}
