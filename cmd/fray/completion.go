package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// completionPatience is how long a shell that completes a word waits for the state.
const completionPatience = 3 * time.Second

// completer offers what a word of a command line may become. What cannot be read offers
// nothing: a shell that completes shows no errors.
type completer = cobra.CompletionFunc

// registerCompletions has the shell offer addresses, workspaces and the values of flags.
func registerCompletions(root *cobra.Command) {
	arguments := map[string]completer{
		"fray status": addressesOrFiles, "fray logs": addresses, "fray exec": firstOnly(addresses), "fray profile": firstOnly(addresses), "fray events": addresses, "fray stop": addresses,
		"fray import": firstOnly(addresses), "fray output": firstOnly(outputs),
		"fray state show": firstOnly(addresses), "fray state rm": addresses, "fray state mv": firstOnly(addresses), "fray state import": firstOnly(addresses),
		"fray workspace select": firstOnly(workspaces), "fray workspace delete": firstOnly(workspaces),
	}
	flags := map[string]completer{
		"target": addresses, "replace": addresses, "workspace": workspaces, "chdir": directories,
		"wait":     values(rollout.WaitReady, rollout.WaitComplete),
		"format":   values(string(graphDOT), string(graphMermaid)),
		"kind":     values(events.EventKinds()...),
		"type":     values("cpu", "memory", "stacks"),
		"lockfile": values("readonly"), "scenario": valuesOrFiles(rehearse.Scenarios()...),
	}
	registerEach(root, arguments, flags)
}

// registerEach registers, by a command's path and a flag's name, for a command and those below.
func registerEach(cmd *cobra.Command, arguments, flags map[string]completer) {
	for _, c := range cmd.Commands() {
		registerEach(c, arguments, flags)
	}
	if f := arguments[cmd.CommandPath()]; f != nil {
		cmd.ValidArgsFunction = f
	}
	for name, f := range flags {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, f) // an error is that it has one
		}
	}
}

// values offers fixed words.
func values(words ...string) completer {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// valuesOrFiles offers files where none of the fixed words begins so.
func valuesOrFiles(words ...string) completer {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		offered := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, word) })
		if len(offered) > 0 {
			return offered, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// firstOnly offers something for the first argument alone.
func firstOnly(f completer) completer {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return f(cmd, args, word)
	}
}

// addresses offers those that are declared or recorded.
func addresses(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	paths := pathsOf(cmd, args)
	known := map[string]bool{}
	if l := located(cmd.Context(), cmd, paths); l != nil {
		for _, addr := range configuration.AllAddresses(l.Document, &l.Desired) {
			known[addr.String()] = true
		}
	}
	if l, diags := configuration.Judge(paths, optionsOf(cmd)); !diags.HasErrors() {
		for _, addr := range configuration.AllAddresses(&state.Document{}, &l.Config.Desired) {
			known[addr.String()] = true
		}
	}
	var offered []string
	for addr := range known {
		if strings.HasPrefix(addr, word) && !slices.Contains(args, addr) {
			offered = append(offered, addr)
		}
	}
	slices.Sort(offered)
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// addressesOrFiles offers files where no address begins so.
func addressesOrFiles(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if offered, directive := addresses(cmd, args, word); len(offered) > 0 {
		return offered, directive
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// outputs offers the names of the outputs that the last apply recorded.
func outputs(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var offered []string
	if l := located(cmd.Context(), cmd, pathsOf(cmd, nil)); l != nil {
		for name := range l.Document.Outputs {
			if strings.HasPrefix(name, word) {
				offered = append(offered, name)
			}
		}
	}
	slices.Sort(offered)
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// workspaces offers those that there are.
func workspaces(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	opts := optionsOf(cmd)
	opts.Workspace = schema.DefaultWorkspace
	at, err := configuration.LocateSite(silent(), pathsOf(cmd, nil), opts)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	names, err := at.Workspaces(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) }), cobra.ShellCompDirectiveNoFileComp
}

func silent() *terminal.Terminal { return terminal.New(nil, io.Discard, io.Discard) }

// located is the stack that a command line names, nil where there is none.
func located(ctx context.Context, cmd *cobra.Command, paths []string) *configuration.Loaded {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	l, err := configuration.Locate(ctx, silent(), paths, optionsOf(cmd))
	if err != nil {
		return nil
	}
	return l
}

// optionsOf are the flags of a command line that say where its stack is.
func optionsOf(cmd *cobra.Command) configuration.Options {
	var opts configuration.Options
	opts.Local, _ = cmd.Flags().GetBool("local") // an error is that there is no such flag
	opts.Workspace, _ = cmd.Flags().GetString("workspace")
	return opts
}

// pathsOf are the files or the directory that a command line names.
func pathsOf(cmd *cobra.Command, args []string) []string {
	if _, paths := addressesAndPaths(args); len(paths) > 0 {
		return paths
	}
	if dir, err := cmd.Flags().GetString("chdir"); err == nil && dir != "" {
		return []string{dir}
	}
	return []string{"."}
}
