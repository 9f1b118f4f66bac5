package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/pause"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A configuration that comes while the stack is paused is taken over once it is
// resumed, though its files do not change again.
func TestProposalWaitsForResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leads(t)
		accept := func(doc *state.Document) {
			t.Helper()
			if err := l.stepper.Accept(t.Context(), doc); err != nil {
				t.Fatal(err)
			}
		}
		accept(pause.Set(l.stepper.Document(), state.Pause{By: "ada"}))
		desired := schema.Desired{Namespaces: []schema.Namespace{{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}}}}
		made := 0
		p := &Proposal{Name: "files", Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
			made++
			return apply.Accept(doc, apply.Request{Desired: desired}), nil
		}}
		l.cfg.Proposal = func() *Proposal { return p }
		follow := func() uint64 {
			t.Helper()
			if err := l.followFiles(t.Context()); err != nil {
				t.Fatal(err)
			}
			return l.stepper.Document().Revision
		}
		for range 3 {
			if got := follow(); got != 0 {
				t.Fatalf("paused: revision %d was accepted, want none", got)
			}
		}
		if made != 1 {
			t.Errorf("paused: the configuration was considered %d times, want once", made)
		}
		accept(pause.Clear(l.stepper.Document()))
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
		l := leads(t)
		desired := desiring("a")
		var p *Proposal
		l.cfg.Proposal = func() *Proposal { return p }
		propose := func() {
			t.Helper()
			p = &Proposal{Name: "files", Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
				return apply.Accept(doc, apply.Request{Desired: desired}), nil
			}}
			if err := l.followFiles(t.Context()); err != nil {
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

func desiring(names ...string) schema.Desired {
	desired := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal, Slices: 10}}}
	for _, name := range names {
		desired.Jobs = append(desired.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: name}, Command: []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderLocal, Slices: 1, CPU: 1},
		})
	}
	return desired
}

// A followed plan that policies deny changes nothing, whichever way they say so, and it is reported once.
func TestDeniedProposalChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, denied := range map[string]func(context.Context, *plan.Plan, *state.Document) (string, error){
			"denies": func(_ context.Context, p *plan.Plan, _ *state.Document) (string, error) {
				return fmt.Sprintf("no more than %d jobs", len(p.Changes)-1), nil
			},
			"fails": func(context.Context, *plan.Plan, *state.Document) (string, error) {
				return "", errors.New("a rule has no value")
			},
		} {
			l := leads(t)
			var judged []string
			p := &Proposal{
				Name: "files", Denied: denied,
				Make: func(_ context.Context, doc *state.Document) (*state.Document, error) {
					return apply.Accept(doc, apply.Request{Desired: desiring("a")}), nil
				},
				Judged: func(v Verdict, text string) { judged = append(judged, string(v)+" "+text) },
			}
			l.cfg.Proposal = func() *Proposal { return p }
			before := l.stepper.Document()
			for range 3 {
				if err := l.followFiles(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if l.stepper.Document() != before {
				t.Errorf("%s: the state was changed to revision %d", name, l.stepper.Document().Revision)
			}
			if len(judged) != 1 || !strings.HasPrefix(judged[0], "rejected not accepted: ") {
				t.Errorf("%s: judged %q, want once as rejected", name, judged)
			}
			p.Denied = func(context.Context, *plan.Plan, *state.Document) (string, error) { return "", nil }
			l.proposed = nil
			if err := l.followFiles(t.Context()); err != nil || l.stepper.Document().Revision != 1 {
				t.Errorf("allowed: got revision %d, %v, want 1", l.stepper.Document().Revision, err)
			}
			if want := "accepted accepted as revision 1: 1 to create, 0 to update, 0 to restart, 0 to replace, 0 to delete"; judged[len(judged)-1] != want {
				t.Errorf("judged %q, want %q", judged[len(judged)-1], want)
			}
		}
	})
}
