package stateverbs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func listCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the addresses the state knows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := surgery.LocateState(cmd.Context(), a, &flags)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(surgery.ListJSON(l.Document))
			}
			for _, addr := range surgery.Recorded(l.Document) {
				fmt.Fprintln(a.Stdout, addr)
			}
			return nil
		},
	}
	register.State(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/state-list-json.md)")
	return cmd
}

func showCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.Options
	cmd := &cobra.Command{
		Use:   "show ADDR",
		Short: "Print what the state records of one address, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := surgery.LocateState(cmd.Context(), a, &flags)
			if err != nil {
				return err
			}
			addrs, err := l.Addresses("state show", args)
			if err != nil {
				return err
			}
			if j, ok := l.Document.Jobs[addrs[0]]; ok {
				return a.PrintJSON(j)
			}
			if r, ok := l.Document.Resources[addrs[0]]; ok {
				return a.PrintJSON(r)
			}
			found := map[string]any{}
			for addr, j := range l.Document.Jobs {
				if addrs[0].Contains(addr) {
					found[addr.String()] = j
				}
			}
			if len(found) == 0 {
				return fmt.Errorf("%s is declared but not in the state; run fray apply", addrs[0])
			}
			return a.PrintJSON(found)
		},
	}
	register.State(&flags, cmd)
	return cmd
}

func pullCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.Options
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Print the state document, decrypted",
		Long: `Print the state document as fray state push takes it. Sensitive values in it are
sealed all the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := surgery.LocateState(cmd.Context(), a, &flags)
			if err != nil {
				return err
			}
			data, err := state.Text(*l.Document)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(data)
			return err
		},
	}
	register.State(&flags, cmd)
	return cmd
}

func historyCommand(a *terminal.Terminal) *cobra.Command {
	var flags surgery.Options
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the versions of the state that the store still has",
		Long: `List the versions of the state that the store still has, newest first: the last
ones in a directory, and in a bucket those that its object versioning keeps.
fray state rollback SERIAL goes back to one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := surgery.OpenForRepair(cmd.Context(), a, &flags)
			if err != nil {
				return err
			}
			versions, err := surgery.History(cmd.Context(), s, limit)
			if err != nil && !errors.Is(err, store.ErrNoVersions) {
				return err
			}
			if err != nil {
				defer a.Warn(err.Error())
			}
			if asJSON {
				return a.PrintJSON(versions)
			}
			return surgery.ShowHistory(a, versions)
		},
	}
	register.State(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 20, "read at most `N` versions, the newest; 0: all")
	return cmd
}
