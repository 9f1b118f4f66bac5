package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/modules"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

func registries() modules.Registries {
	return modules.Registries{Bucket: func(ctx context.Context, place string) (modules.Bucket, error) {
		return stack.Location(place).Open(ctx)
	}}
}

func getCommand(a *terminal.Terminal) *cobra.Command {
	var (
		upgrade  bool
		lockfile string
	)
	cmd := &cobra.Command{
		Use:   "get [DIR | FILE...]",
		Short: "Install the modules that are archives, and lock their versions",
		Long: `Install the modules that are archives, and those that they call, into
.fray/.modules. The versions are those of .fray.lock.hcl; what is not in it gets
the newest version that the calls allow and is added, with the hashes of what it
holds: commit that file. What is installed already is not fetched again.

An archive that is not what was locked is rejected. Every other command only
compares what is installed with the lock file, and fetches nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGet(args); err != nil {
				return err
			}
			switch {
			case lockfile != "" && lockfile != "readonly":
				return fmt.Errorf("--lockfile=%s: the only mode is readonly", lockfile)
			case lockfile != "" && upgrade:
				return errors.New("--upgrade changes the lock file, and --lockfile=readonly forbids it; leave one of them out")
			}
			g := modules.Getter{Registries: registries(), Upgrade: upgrade, ReadOnly: lockfile != "", Fetching: func(l modules.Locked) {
				fmt.Fprintf(a.Stderr, "fetching %s\n", l)
			}}
			result, src, diags := g.Get(cmd.Context(), args)
			if err := a.Diagnostics(terminal.FilesOf(src), diags); err != nil {
				return err
			}
			showModules(a, result)
			return nil
		},
	}
	cmd.Flags().BoolVar(&upgrade, "upgrade", false, "choose the newest versions that the calls allow, whatever is locked")
	cmd.Flags().StringVar(&lockfile, "lockfile", "", "`MODE` readonly: fail where .fray.lock.hcl would change, as CI should")
	return cmd
}

func showModules(a *terminal.Terminal, result modules.Result) {
	if len(result.Modules) == 0 {
		fmt.Fprintln(a.Stdout, "No module is an archive: there is nothing to get.")
	}
	for _, m := range result.Modules {
		how := "installed already"
		if m.Fetched {
			how = "installed"
		}
		if m.Was != "" {
			how += ", was " + m.Was
		}
		fmt.Fprintf(a.Stdout, "%s: %s\n", m.Locked, how)
	}
	if result.Locked {
		fmt.Fprintf(a.Stdout, "%s has changed: commit it with the configuration.\n", modules.LockFile)
	}
}

// kubernetesKinds are what users of kubectl get.
func kubernetesKinds() []string {
	return []string{
		"all", "pod", "pods", "po", "job", "jobs", "node", "nodes", "no", "deployment", "deployments", "deploy", "service", "services", "svc", "events", "namespaces", "ns",
	}
}

// checkGet is the error about fray get with what kubectl gets.
func checkGet(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := os.Stat(args[0]); err == nil {
		return nil
	}
	for _, kind := range kubernetesKinds() {
		switch {
		case args[0] != kind:
		case kind == "events":
			return fmt.Errorf("fray get fetches modules, and there is no directory %q; fray events lists what happened", kind)
		default:
			return fmt.Errorf("fray get fetches modules, and there is no directory %q; fray status shows jobs and where they run", kind)
		}
	}
	return nil
}
