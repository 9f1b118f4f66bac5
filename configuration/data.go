package configuration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// StackReader reads what data blocks name: the states of stacks, once each, and
// what providers offer.
type StackReader struct {
	ctx      context.Context
	Here     stack.Site
	patience time.Duration // how long a stack may take to be read; 0: as long as it takes

	mu     sync.Mutex
	stacks map[eval.StackRef]*readStack
}

var _ eval.Reader = (*StackReader)(nil)

type readStack struct {
	doc    *state.Document
	sealer schema.Sealer
	where  stack.Location
}

// NewReader reads for the configuration of a source. What is wrong with its settings
// is reported by its evaluation.
func NewReader(ctx context.Context, src *lang.Source, at stack.Site, local bool) *StackReader {
	at.Settings, _ = src.Settings(local)
	return &StackReader{ctx: ctx, Here: at, stacks: map[eval.StackRef]*readStack{}}
}

// Anew reads everything again.
func (r *StackReader) Anew(ctx context.Context) *StackReader {
	return &StackReader{ctx: ctx, Here: r.Here, patience: r.patience, stacks: map[eval.StackRef]*readStack{}}
}

// Outputs are those that the state of a stack records.
func (r *StackReader) Outputs(of eval.StackRef) (map[string]eval.DataOutput, error) {
	s, err := r.stack(of)
	if err != nil {
		return nil, err
	}
	found := make(map[string]eval.DataOutput, len(s.doc.Outputs))
	for name, o := range s.doc.Outputs {
		if o.Unknown {
			continue // of an apply that did not get that far
		}
		value, err := outputValue(o, s.sealer)
		if err != nil {
			return nil, fmt.Errorf("read output %s of %s: %w", name, s.where, err)
		}
		found[name] = eval.DataOutput{JSON: value, Sensitive: o.Sensitive}
	}
	return found, nil
}

// Reservation is a reservation of a stack, as its state has it.
func (r *StackReader) Reservation(of eval.StackRef, name string) (eval.ReservationData, error) {
	s, err := r.stack(of)
	if err != nil {
		return eval.ReservationData{}, err
	}
	addr := schema.ScopedAddress(schema.KindReservation, name)
	pool := s.doc.Resources[addr].Reservation
	if pool == nil {
		return eval.ReservationData{}, fmt.Errorf("the stack in %s has no %s%s", s.where, addr, didYouMean(addr.String(), s.doc, nil))
	}
	d := eval.ReservationData{Provider: pool.Provider, Shape: pool.Min, Max: pool.Max.Slices, Preemptible: pool.Preemptible}
	for name, slice := range s.doc.Slices {
		if slice.Spec.Owner == addr && slice.Listed && slice.Terminating.IsZero() {
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
			if packed := s.doc.Slices[held]; packed != nil && packed.Spec.On != "" {
				held = packed.Spec.On // it has a part of that one
			}
			used[held] = true
		}
	}
	d.Allocated = len(used)
	return d, nil
}

// Accelerators are the offers that a query matches.
func (r *StackReader) Accelerators(q accelerators.Query) ([]accelerators.Offer, error) {
	return accelerators.Offers(q), nil
}

func (r *StackReader) bounded() (context.Context, context.CancelFunc) {
	if r.patience == 0 {
		return context.WithCancel(r.ctx)
	}
	return context.WithTimeoutCause(r.ctx, r.patience, fmt.Errorf("it took longer than %s", r.patience))
}

// stack opens the state of a stack; that of the configuration itself is read as
// any other.
func (r *StackReader) stack(of eval.StackRef) (*readStack, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.stacks[of]; s != nil {
		return s, nil
	}
	at := r.Here
	switch {
	case of.Bucket != "":
		at.Settings = schema.Settings{Backend: schema.Backend{Kind: schema.BackendGCS, Bucket: of.Bucket, Prefix: of.Prefix}}
	case of.Path != "":
		at.Settings = schema.Settings{Backend: schema.Backend{Kind: schema.BackendLocal, Path: of.Path}}
	}
	if of.Bucket != "" || of.Path != "" || of.Workspace != "" {
		at = at.InWorkspace(schema.DefaultWorkspace)
	}
	if of.Workspace != "" {
		at = at.InWorkspace(of.Workspace)
	}
	ctx, cancel := r.bounded()
	defer cancel()
	opened, err := stack.Open(ctx, at, false)
	if err != nil {
		return nil, err
	}
	doc, err := opened.Load(ctx)
	if err != nil {
		return nil, err
	}
	other := of != eval.StackRef{}
	if opened.Fresh && other {
		return nil, fmt.Errorf("there is no stack in %s; run fray apply there first", opened.At)
	}
	sealer, err := opened.Sealer(r.ctx, doc, false)
	if err != nil {
		return nil, err
	}
	s := &readStack{doc: doc, sealer: sealer, where: opened.At}
	r.stacks[of] = s
	return s, nil
}
