package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

func eventsCommand(a *app) *cobra.Command {
	var flags configFlags
	var follow, asJSON bool
	var since time.Duration
	var kinds []string
	var dir string
	cmd := &cobra.Command{
		Use:   "events [ADDR...]",
		Short: "What happened, oldest first",
		Long: `Print what happened to the stack, or to what the addresses name: attempts that
began and ended and why, slices that were asked for, came up and went, what waited
for what, who led. Watches and applies keep the last 10 MiB of that in the
stack's store. With -f new ones are printed as they come.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, flags)
			if err != nil {
				return err
			}
			wanted, err := eventFilter(args, kinds, since)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return a.printEvents(ctx, &store.EventReader{Store: l.stack.store}, eventPrint{wanted: wanted, follow: follow, json: asJSON})
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new ones as they come, until Ctrl-C")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each: at, kind, address, slice, level, text")
	cmd.Flags().DurationVar(&since, "since", 0, "only those of the last `TIME`, such as 1h")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only those of these `KINDS`: "+strings.Join(eventKinds(), ", "))
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}

func eventKinds() []string {
	var names []string
	for _, k := range store.EventKinds() {
		names = append(names, string(k))
	}
	return names
}

// eventFilter reports whether an event is asked for.
func eventFilter(args, kinds []string, since time.Duration) (func(store.Event) bool, error) {
	var addrs []schema.Address
	for _, arg := range args {
		addr, err := schema.ParseAddress(arg)
		if err != nil {
			return nil, fmt.Errorf("fray events: %w", err)
		}
		addrs = append(addrs, addr) // it may be gone by now
	}
	for _, k := range kinds {
		if !slices.Contains(eventKinds(), k) {
			return nil, fmt.Errorf("--kind=%s: want one of %s", k, strings.Join(eventKinds(), ", "))
		}
	}
	began := time.Time{}
	if since > 0 {
		began = time.Now().Add(-since)
	}
	return func(e store.Event) bool {
		named := len(addrs) == 0 || slices.ContainsFunc(addrs, func(a schema.Address) bool { return a.Contains(e.Addr) })
		return named && e.At.After(began) && (len(kinds) == 0 || slices.Contains(kinds, string(e.Kind)))
	}, nil
}

type eventPrint struct {
	wanted       func(store.Event) bool
	follow, json bool
}

func (a *app) printEvents(ctx context.Context, r *store.EventReader, p eventPrint) error {
	for {
		events, err := r.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if !p.wanted(e) {
				continue
			}
			if err := a.printEvent(e, p.json); err != nil {
				return err
			}
		}
		if !p.follow {
			return nil
		}
		timer := time.NewTimer(max(500*time.Millisecond, r.Store.WriteInterval()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

func (a *app) printEvent(e store.Event, asJSON bool) error {
	if asJSON {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", line)
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %-8s  %s%s\n", e.At.Local().Format(eventTime), e.Kind, eventAbout(&e), eventText(&e))
	return err
}

// eventTime is how the times of events are shown.
const eventTime = "01-02 15:04:05"

// eventText is what an event says, without the names that eventAbout gives.
func eventText(e *store.Event) string {
	if e.Kind != store.EventDrift {
		return e.Text
	}
	return unnamed(e.Text, e.Addr.String(), "slice "+e.Slice)
}

// unnamed is a text behind names, of which it does without each once.
func unnamed(text string, names ...string) string {
	for _, name := range names {
		if rest, ok := strings.CutPrefix(text, name+" "); ok {
			text = rest
			continue
		}
		text = strings.Replace(text, " of "+name+" ", " ", 1)
	}
	return text
}

// eventAbout names what an event is about, with a space behind it; "" where that
// is the stack.
func eventAbout(e *store.Event) string {
	about := ""
	if (e.Addr != schema.Address{}) {
		about = e.Addr.String() + " "
	}
	if e.Slice != "" {
		about += "slice " + e.Slice + " "
	}
	return about
}
