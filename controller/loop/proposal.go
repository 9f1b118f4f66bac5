package loop

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Proposal is a configuration that a controller is to make true, read from
// files that it follows.
type Proposal struct {
	Name string // for people: a directory, or a repository and its commit
	// Make returns doc with the configuration accepted, without changing doc.
	Make func(ctx context.Context, doc *state.Document) (*state.Document, error)
	// Denied returns why policies deny what the configuration would change, "" if they do not. An
	// error denies as well. next is the document with the configuration accepted. nil: there are
	// no policies.
	Denied func(ctx context.Context, proposed *plan.Plan, next *state.Document) (string, error)
	// Judged is called with what became of it and a text about that; nil: not called.
	Judged func(v Verdict, text string)
	// Refine is as in apply.Config; nil: no value becomes known after apply.
	Refine func(doc *state.Document) (*schema.Desired, error)
}

// Verdict is a closed set of what becomes of a proposal.
type Verdict string

// The verdicts.
const (
	VerdictAccepted Verdict = "accepted"
	VerdictRejected Verdict = "rejected"
	VerdictDeferred Verdict = "deferred" // until the stack is resumed; or only observed
	// What becomes of an accepted one.
	VerdictCompleted  Verdict = "completed"  // all that it changes is as it should be
	VerdictFailed     Verdict = "failed"     // a job of it has failed
	VerdictSuperseded Verdict = "superseded" // another one was accepted before it was completed
)

// judged reports what became of a proposal.
func (p *Proposal) judged(v Verdict, text string) {
	if p.Judged != nil {
		p.Judged(v, text)
	}
}

// LevelNews is the level of what an operator is to read although all is well.
const LevelNews = (slog.LevelInfo + slog.LevelWarn) / 2

// followFiles takes over the newest proposal, unless it was considered before. One
// that cannot be accepted is logged, and the last accepted configuration stays.
// While the stack is paused none is taken over.
func (l *leader) followFiles(ctx context.Context) error {
	if l.cfg.Proposal == nil {
		return nil
	}
	p, doc := l.cfg.Proposal(), l.stepper.Document()
	paused := doc.Paused != nil
	if p == nil || p == l.proposed && (paused || !l.deferred) {
		return nil
	}
	l.proposed, l.deferred = p, paused
	reject := func(why string) {
		l.cfg.Log.Warn("configuration not taken over; the last one stands", "from", p.Name, "why", why)
		p.judged(VerdictRejected, "not accepted: "+why)
	}
	next, err := p.Make(ctx, doc)
	if err != nil {
		reject(err.Error())
		return nil
	}
	proposed, _, err := reconcile.Proposed(&next.Desired, next, time.Now())
	if err != nil {
		return err
	}
	counts := proposed.Counts()
	changes := len(proposed.Changes) - counts[plan.VerbNone]
	text := fmt.Sprintf("%d to create, %d to update, %d to restart, %d to replace, %d to delete",
		counts[plan.VerbCreate], counts[plan.VerbUpdate], counts[plan.VerbRestart], counts[plan.VerbReplace], counts[plan.VerbDelete])
	denied, err := p.denied(ctx, proposed, next)
	switch {
	case len(proposed.Blocked) > 0:
		reject(proposed.Blocked[0].Detail)
		return nil
	case err != nil:
		reject("its policies cannot be evaluated: " + err.Error())
		return nil
	case denied != "":
		reject("policies deny it: " + denied)
		return nil
	case (l.cfg.Observe || paused) && changes == 0:
		p.judged(VerdictCompleted, "nothing differs from what runs")
		return nil
	case l.cfg.Observe || paused:
		l.cfg.Log.Log(ctx, LevelNews, "configuration differs and is not taken over", "from", p.Name, "would have", text)
		p.judged(VerdictDeferred, "not accepted, since the stack is only observed or paused; it would have "+text)
		return nil
	}
	l.stepper.SetRefine(p.Refine)
	l.setFollowed(next)
	l.cfg.Log.Log(ctx, LevelNews, "configuration taken over", "from", p.Name, "with", text)
	if err := l.stepper.Accept(ctx, next); err != nil {
		return err
	}
	p.judged(VerdictAccepted, fmt.Sprintf("accepted as revision %d: %s", next.Revision, text))
	l.begin(begun(p, proposed, next))
	return nil
}

// denied is why policies deny a plan, "" if they do not.
func (p *Proposal) denied(ctx context.Context, proposed *plan.Plan, next *state.Document) (string, error) {
	if p.Denied == nil {
		return "", nil
	}
	return p.Denied(ctx, proposed, next)
}
