package surgery

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// ShowLease prints who holds the lease, and whether it is live.
func ShowLease(a *terminal.Terminal, s *stack.Stack, sight store.Sight) error {
	l, now := sight.Lease, sight.Now
	standing := "held"
	switch {
	case l.Released:
		standing = "free: released by its last holder"
	case l.Gone():
		standing = "free: its holder's process is gone"
	case !stack.Leads(sight):
		standing = "free: it has lapsed, since its holder did not renew it"
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	if name := s.Named(); name != "" {
		line("Workspace", name)
	}
	line("Lease", standing)
	line("Holder", l.User)
	line("Host", l.Host)
	line("Process", l.PID)
	line("Command", l.Command)
	line("Since", terminal.Moment(l.AcquiredAt, now))
	line("Renewed", terminal.Moment(l.RenewedAt, now))
	if standing == "held" {
		line("Lapses", l.ExpiresAt.Local().Format("2006-01-02 15:04:05")+" unless it is renewed")
	}
	line("Epoch", l.Epoch)
	if b := l.Broken; b != nil {
		line("Broken", fmt.Sprintf("epoch %d of %s, by %s, %s", b.Epoch, b.Holder, b.By, terminal.Moment(b.At, now)))
	}
	return w.Flush()
}

// BreakLease ends the lease that was just shown, and no other.
func BreakLease(ctx context.Context, a *terminal.Terminal, s *stack.Stack, sight store.Sight, force bool) error {
	l := sight.Lease
	if !stack.Leads(sight) {
		fmt.Fprintln(a.Stdout, "The lease is not held; there is nothing to break.")
		return nil
	}
	if !force {
		return fmt.Errorf("%w\nTo end its lease all the same: fray state lease --break --force", s.WithWorkspace(&store.HeldError{Lease: l}))
	}
	broken, err := store.Break(ctx, s.Store, store.LeaseConfig{Command: stack.CommandLine(), Now: func() time.Time { return s.Clock.Now(ctx) }}, l)
	if errors.Is(err, store.ErrNotLive) {
		fmt.Fprintln(a.Stdout, "The lease is not held any more; there was nothing to break.")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "Broke the lease of %s (epoch %d). It is recorded in the lease; the next holder gets a higher epoch.\n",
		broken.Broken.Holder, broken.Broken.Epoch)
	return nil
}
