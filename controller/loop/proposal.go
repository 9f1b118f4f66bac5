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
	// Refine is as in apply.Config; nil: no value becomes known after apply.
	Refine func(doc *state.Document) (*schema.Desired, error)
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
	next, err := p.Make(ctx, doc)
	if err != nil {
		l.cfg.Log.Warn("configuration not taken over; the last one stands", "from", p.Name, "why", err.Error())
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
	switch {
	case (l.cfg.Observe || paused) && changes == 0:
		return nil
	case l.cfg.Observe || paused:
		l.cfg.Log.Log(ctx, LevelNews, "configuration differs and is not taken over", "from", p.Name, "would have", text)
		return nil
	case len(proposed.Blocked) > 0:
		l.cfg.Log.Warn("configuration not taken over; the last one stands", "from", p.Name, "why", proposed.Blocked[0].Detail)
		return nil
	}
	l.stepper.SetRefine(p.Refine)
	l.setFollowed(next)
	l.cfg.Log.Log(ctx, LevelNews, "configuration taken over", "from", p.Name, "with", text)
	return l.stepper.Accept(ctx, next)
}
