package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func stateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Look into the state",
	}
	cmd.AddCommand(stateListCommand(a), stateShowCommand(a))
	return cmd
}

func stateListCommand(a *app) *cobra.Command {
	var config configFlags
	var dir string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the addresses the state knows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			for _, addr := range allAddresses(l.doc, nil) {
				_, job := l.doc.Jobs[addr]
				_, resource := l.doc.Resources[addr]
				if job || resource {
					fmt.Fprintln(a.stdout, addr)
				}
			}
			return nil
		},
	}
	config.register(cmd)
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "look at the stack of `DIR` (or of one file)")
	return cmd
}

func stateShowCommand(a *app) *cobra.Command {
	var config configFlags
	var dir string
	cmd := &cobra.Command{
		Use:   "show ADDR",
		Short: "Print what the state records of one address, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			addrs, err := l.addresses("state show", args)
			if err != nil {
				return err
			}
			if j, ok := l.doc.Jobs[addrs[0]]; ok {
				return a.printJSON(j)
			}
			if r, ok := l.doc.Resources[addrs[0]]; ok {
				return a.printJSON(r)
			}
			found := map[string]any{}
			for addr, j := range l.doc.Jobs {
				if addrs[0].Contains(addr) {
					found[addr.String()] = j
				}
			}
			if len(found) == 0 {
				return fmt.Errorf("%s is declared but not in the state; run fray apply", addrs[0])
			}
			return a.printJSON(found)
		},
	}
	config.register(cmd)
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "look at the stack of `DIR` (or of one file)")
	return cmd
}
