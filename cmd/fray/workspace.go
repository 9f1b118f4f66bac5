package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

func workspaceCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "Keep several worlds of one configuration apart",
	}
	cmd.AddCommand(
		workspaceListCommand(a), workspaceNewCommand(a), workspaceSelectCommand(a),
		workspaceDeleteCommand(a), workspaceShowCommand(a),
	)
	return cmd
}

// workspaceFlags say which configuration's workspaces are meant.
type workspaceFlags struct {
	local bool
	dir   string
}

func (f *workspaceFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.local, "local", false, "the workspaces of a state that is on this machine")
	cmd.Flags().StringVarP(&f.dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
}

// site is that of the current workspace, as far as it is known: what the file
// that remembers it holds may be broken, which is the error then.
func (f *workspaceFlags) site(a *app) (at site, broken, err error) {
	at, err = a.siteOf([]string{f.dir}, configFlags{local: f.local, workspace: schema.DefaultWorkspace})
	if err != nil {
		return at, nil, err
	}
	current, broken := siteOf(at.dir, at.settings, "")
	return current, broken, nil
}

func workspaceListCommand(a *app) *cobra.Command {
	var flags workspaceFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the workspaces, the current one with a star",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, broken, err := flags.site(a)
			if err != nil {
				return err
			}
			names, err := at.workspaces(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range names {
				mark := " "
				if name == at.workspace && broken == nil {
					mark = "*"
				}
				fmt.Fprintf(a.stdout, "%s %s\n", mark, name)
			}
			switch {
			case broken != nil:
				a.warn(broken.Error())
			case !slices.Contains(names, at.workspace):
				a.warn(at.notAmong(names).Error())
			}
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}

func workspaceShowCommand(a *app) *cobra.Command {
	var flags workspaceFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the name of the current workspace",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			at, broken, err := flags.site(a)
			if err == nil {
				err = broken
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, at.workspace)
			return err
		},
	}
	flags.register(cmd)
	return cmd
}

func workspaceNewCommand(a *app) *cobra.Command {
	var flags workspaceFlags
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a workspace, empty, and select it",
		Long: `Make a workspace and select it. It is empty: nothing of another workspace is seen
or touched from it, and the next fray apply makes everything anew.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, _, err := flags.site(a)
			if err == nil {
				err = errors.Join(selectable(args[0]), validWorkspace(args[0]))
			}
			if err != nil {
				return err
			}
			at = at.in(args[0])
			err = at.make(cmd.Context())
			if errors.Is(err, errWorkspaceExists) {
				return fmt.Errorf("%w; to go on in it: fray workspace select %s", err, args[0])
			}
			if err != nil {
				return err
			}
			return a.selectMade(at)
		},
	}
	flags.register(cmd)
	return cmd
}

func workspaceSelectCommand(a *app) *cobra.Command {
	var flags workspaceFlags
	var orCreate bool
	cmd := &cobra.Command{
		Use:   "select NAME",
		Short: "Choose the workspace that commands act in from now on",
		Long: `Choose the workspace that commands act in from now on. It is remembered in
.fray/workspace beside the configuration; FRAY_WORKSPACE and --workspace go
before it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, _, err := flags.site(a)
			if err == nil {
				err = errors.Join(selectable(args[0]), validWorkspace(args[0]))
			}
			if err != nil {
				return err
			}
			at = at.in(args[0])
			if orCreate {
				err := at.make(cmd.Context())
				if err == nil {
					return a.selectMade(at)
				}
				if !errors.Is(err, errWorkspaceExists) {
					return err
				}
			}
			names, err := at.workspaces(cmd.Context())
			if err != nil {
				return err
			}
			if !slices.Contains(names, args[0]) {
				at.chosenBy = "select " + args[0]
				return at.notAmong(names)
			}
			if err := at.choose(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "Workspace %q is selected.\n", args[0])
			return nil
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&orCreate, "or-create", false, "make it if it is not there")
	return cmd
}

// selectable refuses to select what the environment would hide.
func selectable(name string) error {
	if set := os.Getenv(workspaceVariable); set != "" && set != name {
		return fmt.Errorf("%s=%s is set and goes before what is selected; unset it first", workspaceVariable, set)
	}
	return nil
}

// selectMade selects a workspace that was just made.
func (a *app) selectMade(at site) error {
	if err := at.choose(at.workspace); err != nil {
		return fmt.Errorf("workspace %q is made but not selected: %w; to select it: fray workspace select %s", at.workspace, err, at.workspace)
	}
	where, err := at.location()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "Workspace %q is made and selected. Its state is kept in %s.\n", at.workspace, where)
	return nil
}

var errWorkspaceExists = errors.New("there is such a workspace already")

// marker is the content of workspaceKey, for people.
type marker struct {
	Workspace string    `json:"workspace"`
	MadeAt    time.Time `json:"made_at"`
	MadeBy    string    `json:"made_by"`
}

// make makes the workspace, which is there as soon as its marker is.
func (at site) make(ctx context.Context) error {
	if at.isDefault() {
		return fmt.Errorf("workspace %q: %w", at.workspace, errWorkspaceExists)
	}
	where, err := at.location()
	if err != nil {
		return err
	}
	if !where.inBucket() {
		if err := makeIgnored(at.settings.Backend.Path); err != nil {
			return fmt.Errorf("make workspace %q: %w", at.workspace, err)
		}
	}
	s, err := where.create(ctx)
	if err != nil {
		return fmt.Errorf("make workspace %q: %w", at.workspace, err)
	}
	data, err := json.MarshalIndent(marker{Workspace: at.workspace, MadeAt: time.Now().UTC(), MadeBy: userAtHost()}, "", "  ")
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, workspaceKey, append(data, '\n'), store.Absent)
	if errors.Is(err, store.ErrConflict) {
		err = errWorkspaceExists
	}
	if err != nil {
		return fmt.Errorf("workspace %q: %w", at.workspace, err)
	}
	return nil
}
