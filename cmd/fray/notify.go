package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/terminal"
)

func notifyCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Try the receivers of notifications",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(notifyTestCommand(a))
	return cmd
}

func notifyTestCommand(a *terminal.Terminal) *cobra.Command {
	var flags configuration.Options
	var applied, asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Send a test message to the receivers of a notification",
		Long: `Send a message of the kind test to all receivers of notification.NAME, each once, and
say of each whether it took the message. The notification is that of the files; with
--applied it is the one that was applied last, whose sensitive values are in the state.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, reveal, l, err := notificationOf(cmd.Context(), a, dir, args[0], flags, applied)
			if err != nil {
				return err
			}
			sent := notice.Test("test-"+strings.ToLower(rand.Text()), n, l.Document.Stack(), l.Stack.Workspace, time.Now().UTC())
			trials := notices.NewSender(reveal, 0, 0).Try(cmd.Context(), n, sent)
			failed := slices.ContainsFunc(trials, func(t notices.Trial) bool { return t.Failure != "" })
			if asJSON {
				if err := a.PrintJSON(trials); err != nil {
					return err
				}
			}
			for _, t := range trials {
				switch {
				case asJSON:
				case t.Failure == "":
					fmt.Fprintf(a.Stdout, "%s: took the message %s.\n", t.Receiver, sent.ID)
				default:
					fmt.Fprintf(a.Stdout, "%s: did not take the message: %s.\n", t.Receiver, t.Failure)
				}
			}
			if failed {
				return &terminal.Exit{Code: 1}
			}
			return nil
		},
	}
	register.Config(&flags, cmd)
	cmd.Flags().BoolVar(&applied, "applied", false, "test the notification that was applied last, not that of the files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: of each receiver its name, and the failure if there was one")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}

// notificationOf finds a notification, and what opens its sensitive values.
func notificationOf(ctx context.Context, a *terminal.Terminal, dir, name string, flags configuration.Options, applied bool) (*schema.Notification, func(schema.Text) (string, error), *configuration.Loaded, error) {
	name = strings.TrimPrefix(name, string(schema.KindNotification)+".")
	load := func() (*configuration.Loaded, error) {
		return configuration.Load(ctx, a, []string{dir}, flags, false)
	}
	if applied {
		load = func() (*configuration.Loaded, error) { return configuration.Locate(ctx, a, []string{dir}, flags) }
	}
	l, err := load()
	if err != nil {
		return nil, nil, nil, err
	}
	declared := l.Desired.Notifications
	if applied {
		declared = nil
		for _, r := range l.Document.Resources {
			if r.Notification != nil {
				declared = append(declared, *r.Notification)
			}
		}
	}
	sealer, err := l.Stack.Sealer(ctx, l.Document, false)
	if err != nil {
		return nil, nil, nil, err
	}
	if l.Sealer != nil {
		sealer = l.Sealer
	}
	reveal := func(t schema.Text) (string, error) { return t.Reveal(sealer) }
	var names []string
	for i := range declared {
		if declared[i].Addr.Scoped() == name {
			return &declared[i], reveal, l, nil
		}
		names = append(names, declared[i].Addr.Scoped())
	}
	slices.Sort(names)
	switch near := schema.Nearest(name, names); {
	case near != "":
		return nil, nil, nil, fmt.Errorf("there is no notification.%s; did you mean %s?", name, near)
	case len(names) > 0:
		return nil, nil, nil, fmt.Errorf("there is no notification.%s; there are: %s", name, strings.Join(names, ", "))
	}
	return nil, nil, nil, fmt.Errorf("there is no notification.%s: no notification is declared", name)
}
