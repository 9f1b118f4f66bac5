package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/state/store"
)

func stateLeaseCommand(a *app) *cobra.Command {
	var flags stateFlags
	var asJSON, end, force bool
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Show who may change the stack, or end a lease by force",
		Long: `Show who holds the stack's lease: host, process, command, and since when. A
lease lapses by itself seconds after its holder died, so nothing has to be
unlocked after a crash. --break ends the lease of a holder that lives, for one
that hangs or was forgotten on a machine out of reach; it needs --force and is
recorded. Whoever held it can write nothing any more and stops within seconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if force && !end {
				return errors.New("--force goes with --break")
			}
			l, err := a.locateState(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			sight, err := l.stack.clock.Look(cmd.Context())
			if err != nil {
				return err
			}
			if end {
				if err := store.CheckPlace(l.stack.store); err != nil {
					return err
				}
			}
			if sight.Lease.Holder == "" {
				fmt.Fprintln(a.stdout, "Nobody has held this stack's lease yet.")
				return nil
			}
			if end {
				return a.breakLease(cmd.Context(), l.stack, sight, force)
			}
			if asJSON {
				return a.printJSON(sight.Lease)
			}
			return a.showLease(l.stack, sight)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&end, "break", false, "end the lease of whoever holds it")
	cmd.Flags().BoolVar(&force, "force", false, "with --break: although the holder lives")
	return cmd
}

func (a *app) showLease(s *stack, sight store.Sight) error {
	l, now := sight.Lease, sight.Now
	standing := "held"
	switch {
	case l.Released:
		standing = "free: released by its last holder"
	case l.Gone():
		standing = "free: its holder's process is gone"
	case !leads(sight):
		standing = "free: it has lapsed, since its holder did not renew it"
	}
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	if name := s.named(); name != "" {
		line("Workspace", name)
	}
	line("Lease", standing)
	line("Holder", l.User)
	line("Host", l.Host)
	line("Process", l.PID)
	line("Command", l.Command)
	line("Since", moment(l.AcquiredAt, now))
	line("Renewed", moment(l.RenewedAt, now))
	if standing == "held" {
		line("Lapses", l.ExpiresAt.Local().Format("2006-01-02 15:04:05")+" unless it is renewed")
	}
	line("Epoch", l.Epoch)
	if b := l.Broken; b != nil {
		line("Broken", fmt.Sprintf("epoch %d of %s, by %s, %s", b.Epoch, b.Holder, b.By, moment(b.At, now)))
	}
	return w.Flush()
}

// moment is a time and how long ago that was.
func moment(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("2006-01-02 15:04:05"), roundAge(now.Sub(t)))
}

// breakLease ends the lease that was just shown, and no other.
func (a *app) breakLease(ctx context.Context, s *stack, sight store.Sight, force bool) error {
	l := sight.Lease
	if !leads(sight) {
		fmt.Fprintln(a.stdout, "Nobody holds the lease; there is nothing to break.")
		return nil
	}
	if !force {
		return fmt.Errorf("%w\nTo end its lease all the same: fray state lease --break --force", s.naming(&store.HeldError{Lease: l}))
	}
	broken, err := store.Break(ctx, s.store, store.LeaseConfig{Command: commandLine(), Now: func() time.Time { return s.clock.Now(ctx) }}, l)
	if errors.Is(err, store.ErrNotLive) {
		fmt.Fprintln(a.stdout, "Nobody holds the lease any more; there was nothing to break.")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "Broke the lease of %s (epoch %d). It is recorded in the lease; the next holder gets a higher epoch.\n",
		broken.Broken.Holder, broken.Broken.Epoch)
	return nil
}
