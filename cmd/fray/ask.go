package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fray-ml/fray/apply"
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
	unasked := nothingIn(p)
	if unasked && r.destroying {
		return p, nil // said by itself
	}
	if err := r.app.showPlan(r.l, p, false, false); err != nil || unasked {
		return p, err
	}
	if err := r.app.refusals(r.l, p); err != nil {
		return p, err
	}
	return p, r.approve(ctx)
}

// nothingIn reports whether a plan has nothing to be approved.
func nothingIn(p *plan.Plan) bool { return p.Empty() && len(p.Pending) == 0 }

// unchanged reports whether the state would be as good as it is without this
// apply. A lifecycle is no change of what runs, and yet to be remembered.
func (r *runner) unchanged(p *plan.Plan) bool {
	return nothingIn(p) && (r.destroying || r.sameRecording() && plan.Remembers(apply.Accept(r.l.doc, r.c.request(r.l.doc))))
}

// untouched is how a command ends that was interrupted before it did anything.
func untouched(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &exit{code: exitInterrupted, msg: "interrupted; nothing was done"}
}

func (r *runner) approve(ctx context.Context) error {
	within := ""
	if name := r.l.stack.named(); name != "" {
		within = fmt.Sprintf(" in workspace %q", name)
	}
	question := "Do these things" + within + "?"
	if r.destroying {
		question = "Destroy all of this" + within + "? There is no way back."
	}
	nobody := errors.New("there is nobody to ask; review with fray plan and use --auto-approve")
	if r.app.stdin == nil {
		return nobody
	}
	fmt.Fprintf(r.app.stderr, "\n%s Only \"yes\" is accepted: ", question)
	line, err := r.app.readLine(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(r.app.stderr)
		return untouched(ctx, err)
	case strings.TrimSpace(line) == "yes":
		return nil
	case err != nil && line == "":
		fmt.Fprintln(r.app.stderr)
		return nobody
	}
	return errors.New("not approved; nothing was done")
}

// readLine reads a line that somebody types, until ctx ends.
func (a *app) readLine(ctx context.Context) (string, error) {
	return answered(ctx, func() (string, error) {
		if a.typed == nil { // one for all questions: it may have read ahead
			a.typed = bufio.NewReader(a.stdin)
		}
		return a.typed.ReadString('\n')
	})
}

// answered waits for a read until ctx ends. A read cannot be interrupted: it
// ends with the process.
func answered(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := read()
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-answers:
		return got.line, got.err
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
