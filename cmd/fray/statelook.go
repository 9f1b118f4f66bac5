package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func stateListCommand(a *app) *cobra.Command {
	var flags stateFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the addresses the state knows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.locateState(cmd.Context(), &flags)
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
	flags.register(cmd)
	return cmd
}

func stateShowCommand(a *app) *cobra.Command {
	var flags stateFlags
	cmd := &cobra.Command{
		Use:   "show ADDR",
		Short: "Print what the state records of one address, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locateState(cmd.Context(), &flags)
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
	flags.register(cmd)
	return cmd
}

func statePullCommand(a *app) *cobra.Command {
	var flags stateFlags
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Print the state document, decrypted",
		Long: `Print the state document as fray state push takes it. Sensitive values in it are
sealed all the same.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.locateState(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			data, err := state.Encode(*l.doc)
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(data)
			return err
		},
	}
	flags.register(cmd)
	return cmd
}

// stateVersion is one version of the state, for history and rollback.
type stateVersion struct {
	Serial      uint64    `json:"serial"`
	Written     time.Time `json:"written"`
	FrayVersion string    `json:"fray_version"`
	Epoch       uint64    `json:"epoch"`
	Revision    uint64    `json:"revision"`
	Jobs        int       `json:"jobs"`
	Slices      int       `json:"slices"`
	Current     bool      `json:"current,omitempty"`
	// Problem says why the version cannot be rolled back to.
	Problem string `json:"problem,omitempty"`

	damaged bool // its content is not what was written
	doc     state.Document
}

// read reports whether anything of the version could be read.
func (v *stateVersion) read() bool { return v.FrayVersion != "" }

func stateHistoryCommand(a *app) *cobra.Command {
	var flags stateFlags
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
			s, err := a.openForRepair(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			versions, err := s.history(cmd.Context(), limit)
			if err != nil && !errors.Is(err, store.ErrNoVersions) {
				return err
			}
			if err != nil {
				defer a.warn(err.Error())
			}
			if asJSON {
				return a.printJSON(versions)
			}
			return a.showHistory(versions)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 20, "read at most `N` versions, the newest; 0: all")
	return cmd
}

func (a *app) showHistory(versions []stateVersion) error {
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SERIAL\tWRITTEN\tREVISION\tJOBS\tSLICES\tBY\t")
	for _, v := range versions {
		var notes []string
		if v.Current {
			notes = append(notes, "current")
		}
		switch {
		case v.damaged:
			notes = append(notes, "damaged")
		case v.Problem != "":
			notes = append(notes, v.Problem)
		}
		written, note := v.Written.Local().Format("2006-01-02 15:04:05"), strings.Join(notes, ", ")
		if !v.read() {
			fmt.Fprintf(w, "-\t%s\t-\t-\t-\t-\t%s\n", written, note)
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\tfray %s\t%s\n", v.Serial, written, v.Revision, v.Jobs, v.Slices, v.FrayVersion, note)
	}
	return w.Flush()
}
