package controller

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// A configuration that comes while the stack is paused is taken over once it is
// resumed, though its files do not change again.
func TestProposalWaitsForResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stepper, err := apply.New(t.Context(), apply.Config{
			Store: storetest.NewMemory(), Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		accept := func(doc *state.Document) {
			t.Helper()
			if err := stepper.Accept(t.Context(), doc); err != nil {
				t.Fatal(err)
			}
		}
		accept(Paused(stepper.Document(), state.Pause{By: "ada"}))
		desired := schema.Desired{Namespaces: []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}}}}
		made := 0
		p := &Proposal{Name: "files", Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
			made++
			return apply.Accept(doc, apply.Request{Desired: desired}), nil
		}}
		l := &leader{loop: newLoop(), stepper: stepper, cfg: Config{Log: slog.New(slog.DiscardHandler), Proposal: func() *Proposal { return p }}}
		follow := func() uint64 {
			t.Helper()
			if err := l.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			return stepper.Document().Revision
		}
		for range 3 {
			if got := follow(); got != 0 {
				t.Fatalf("paused: revision %d was accepted, want none", got)
			}
		}
		if made != 1 {
			t.Errorf("paused: the configuration was looked at %d times, want once", made)
		}
		accept(Resumed(stepper.Document()))
		for range 3 {
			if got := follow(); got != 1 {
				t.Fatalf("resumed: revision is %d, want the configuration accepted as 1", got)
			}
		}
	})
}

// A configuration that changes nothing but lifecycles is taken over all the same.
func TestProposalOfALifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		desired := desiring("a")
		var p *Proposal
		l.cfg.Proposal = func() *Proposal { return p }
		propose := func() {
			t.Helper()
			p = &Proposal{Name: "files", Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
				return apply.Accept(doc, apply.Request{Desired: desired}), nil
			}}
			if err := l.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := l.stepper.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, protected := range []bool{false, true} {
			desired = desiring("a")
			desired.Jobs[0].Lifecycle.PreventDestroy = protected
			propose()
			if got := l.stepper.Document().Jobs[desired.Jobs[0].Addr]; got == nil || got.Spec.Lifecycle.PreventDestroy != protected {
				t.Errorf("protected %v: recorded is %+v", protected, got)
			}
		}
	})
}
