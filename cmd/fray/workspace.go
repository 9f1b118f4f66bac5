package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

func workspaceCommand(a *terminal.Terminal) *cobra.Command {
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

func registerWorkspace(f *workspaceFlags, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.local, "local", false, "the workspaces of a state that is on this machine")
	cmd.Flags().StringVarP(&f.dir, "chdir", "C", ".", "act on the stack of `DIR` (or of one file)")
}

// site is that of the current workspace, as far as it is known: what the file
// that remembers it holds may be broken, which is the error then.
func (f *workspaceFlags) site(a *terminal.Terminal) (at stack.Site, broken, err error) {
	at, err = configuration.LocateSite(a, []string{f.dir}, configuration.Options{Local: f.local, Workspace: schema.DefaultWorkspace})
	if err != nil {
		return at, nil, err
	}
	current, broken := stack.SiteOf(at.Dir, at.Settings, "")
	return current, broken, nil
}

func workspaceListCommand(a *terminal.Terminal) *cobra.Command {
	var flags workspaceFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the workspaces, the current one with a star",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, broken, err := flags.site(a)
			if err != nil {
				return err
			}
			names, err := at.Workspaces(cmd.Context())
			if err != nil {
				return err
			}
			current := at.Workspace
			if broken != nil {
				current = ""
			}
			if err := printWorkspaces(a, names, current, asJSON); err != nil {
				return err
			}
			switch {
			case broken != nil:
				a.Warn(broken.Error())
			case !slices.Contains(names, at.Workspace):
				a.Warn(at.NotAmong(names).Error())
			}
			return nil
		},
	}
	registerWorkspace(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/workspace-list-json.md)")
	return cmd
}

func printWorkspaces(a *terminal.Terminal, names []string, current string, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(workspacesAsJSON(names, current))
	}
	for _, name := range names {
		mark := " "
		if name == current {
			mark = "*"
		}
		fmt.Fprintf(a.Stdout, "%s %s\n", mark, name)
	}
	return nil
}

func workspaceShowCommand(a *terminal.Terminal) *cobra.Command {
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
			_, err = fmt.Fprintln(a.Stdout, at.Workspace)
			return err
		},
	}
	registerWorkspace(&flags, cmd)
	return cmd
}

func workspaceNewCommand(a *terminal.Terminal) *cobra.Command {
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
				err = errors.Join(selectable(args[0]), stack.ValidWorkspace(args[0]))
			}
			if err != nil {
				return err
			}
			at = at.InWorkspace(args[0])
			err = at.Make(cmd.Context())
			if errors.Is(err, stack.ErrWorkspaceExists) {
				return fmt.Errorf("%w; to go on in it: fray workspace select %s", err, args[0])
			}
			if err != nil {
				return err
			}
			return selectMade(a, at)
		},
	}
	registerWorkspace(&flags, cmd)
	return cmd
}

func workspaceSelectCommand(a *terminal.Terminal) *cobra.Command {
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
				err = errors.Join(selectable(args[0]), stack.ValidWorkspace(args[0]))
			}
			if err != nil {
				return err
			}
			at = at.InWorkspace(args[0])
			if orCreate {
				err := at.Make(cmd.Context())
				if err == nil {
					return selectMade(a, at)
				}
				if !errors.Is(err, stack.ErrWorkspaceExists) {
					return err
				}
			}
			names, err := at.Workspaces(cmd.Context())
			if err != nil {
				return err
			}
			if !slices.Contains(names, args[0]) {
				at.ChosenBy = "select " + args[0]
				return at.NotAmong(names)
			}
			if err := at.Choose(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "Workspace %q is selected.\n", args[0])
			return nil
		},
	}
	registerWorkspace(&flags, cmd)
	cmd.Flags().BoolVar(&orCreate, "or-create", false, "make it if it is not there")
	return cmd
}

// selectable rejects to select what the environment would hide.
func selectable(name string) error {
	if set := os.Getenv(stack.WorkspaceVariable); set != "" && set != name {
		return fmt.Errorf("%s=%s is set and goes before what is selected; unset it first", stack.WorkspaceVariable, set)
	}
	return nil
}

// selectMade selects a workspace that was just made.
func selectMade(a *terminal.Terminal, at stack.Site) error {
	if err := at.Choose(at.Workspace); err != nil {
		return fmt.Errorf("workspace %q is made but not selected: %w; to select it: fray workspace select %s", at.Workspace, err, at.Workspace)
	}
	where, err := at.Location()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "Workspace %q is made and selected. Its state is kept in %s.\n", at.Workspace, where)
	return nil
}

// workspaceListJSON is what workspace list --json prints, as docs/workspace-list-json.md
// describes it.
type workspaceListJSON struct {
	FormatVersion string            `json:"format_version"`
	Current       string            `json:"current,omitempty"`
	Workspaces    []listedWorkspace `json:"workspaces"`
}

type listedWorkspace struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
}

// workspacesAsJSON are workspaces, of which current is the one that commands act in, ""
// where that is not known.
func workspacesAsJSON(names []string, current string) workspaceListJSON {
	out := workspaceListJSON{FormatVersion: listFormat, Current: current, Workspaces: []listedWorkspace{}}
	for _, name := range names {
		out.Workspaces = append(out.Workspaces, listedWorkspace{Name: name, Current: name == current})
	}
	return out
}
