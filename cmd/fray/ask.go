package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ask shows the plan and has it approved, unless there is nothing to approve.
// Nothing has been begun yet, so that a Ctrl-C leaves at once.
func (r *runner) ask(ctx context.Context) (*plan.Plan, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p, err := r.l.preview(ctx, r.c)
	if err != nil {
		return nil, untouched(ctx, err)
	}
	nothing := p.Empty() && len(p.Pending) == 0
	if nothing && r.destroying {
		return p, nil // said by itself
	}
	if err := r.app.showPlan(r.l, p, false, false); err != nil || nothing {
		return p, err
	}
	return p, r.approve(ctx)
}

// untouched is how a command ends that was interrupted before it did anything.
func untouched(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &exit{code: exitInterrupted, msg: "interrupted; nothing was done"}
}

func (r *runner) approve(ctx context.Context) error {
	question := "Do these things?"
	if r.destroying {
		question = "Destroy all of this? There is no way back."
	}
	nobody := errors.New("there is nobody to ask; review with fray plan and use --auto-approve")
	if r.app.stdin == nil {
		return nobody
	}
	fmt.Fprintf(r.app.stderr, "\n%s Only \"yes\" is accepted: ", question)
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() { // a read cannot be interrupted; it ends with the process
		line, err := bufio.NewReader(r.app.stdin).ReadString('\n')
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(r.app.stderr)
		return untouched(ctx, ctx.Err())
	case got := <-answers:
		switch {
		case strings.TrimSpace(got.line) == "yes":
			return nil
		case got.err != nil && got.line == "":
			fmt.Fprintln(r.app.stderr)
			return nobody
		}
		return errors.New("not approved; nothing was done")
	}
}

// nothing ends an apply whose plan is empty; outputs may still be new.
func (r *runner) nothing(ctx context.Context) error {
	if r.destroying {
		fmt.Fprintln(r.app.stdout, nothingToDestroy)
		return nil
	}
	if r.flags.wait == waitComplete && hasLive(r.l.doc) {
		r.flags.autoApprove = true
		return r.apply(ctx)
	}
	if r.l.desired.Controller != nil {
		if err := r.startController(); err != nil {
			return err
		}
	}
	r.failedBefore = failedAttempts(r.l.doc)
	return r.failedJobs(r.l.doc, r.targeted)
}

const nothingToDestroy = "Nothing to destroy."

// targeted reports whether an address is among the targets, all where there are none.
func (r *runner) targeted(addr schema.Address) bool {
	for _, t := range r.c.targets {
		if t.Contains(addr) {
			return true
		}
	}
	return len(r.c.targets) == 0
}

func hasLive(doc *state.Document) bool {
	for _, j := range doc.Jobs {
		if !j.Status.Ended() && !j.Spec.IsService() {
			return true
		}
	}
	return false
}
