package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/modules"
	"github.com/fray-ml/fray/schema"
)

// parse reads a configuration with the modules that are installed.
func parse(paths []string) (*schema.Source, hcl.Diagnostics) {
	return schema.Parser{Modules: &modules.Installed{}}.Parse(paths)
}

func registries() modules.Registries {
	return modules.Registries{Bucket: func(ctx context.Context, place string) (modules.Bucket, error) {
		return location(place).open(ctx)
	}}
}

func getCommand(a *app) *cobra.Command {
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

An archive that is not what was locked is refused. Every other command only
compares what is installed with the lock file, and fetches nothing.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case lockfile != "" && lockfile != "readonly":
				return fmt.Errorf("--lockfile=%s: the only mode is readonly", lockfile)
			case lockfile != "" && upgrade:
				return errors.New("--upgrade changes the lock file, and --lockfile=readonly forbids it; leave one of them out")
			}
			g := modules.Getter{Registries: registries(), Upgrade: upgrade, ReadOnly: lockfile != "", Fetching: func(l modules.Locked) {
				fmt.Fprintf(a.stderr, "fetching %s\n", l)
			}}
			result, src, diags := g.Get(cmd.Context(), args)
			if err := a.diagnostics(filesOf(src), diags); err != nil {
				return err
			}
			a.showModules(result)
			return nil
		},
	}
	cmd.Flags().BoolVar(&upgrade, "upgrade", false, "choose the newest versions that the calls allow, whatever is locked")
	cmd.Flags().StringVar(&lockfile, "lockfile", "", "`MODE` readonly: fail where .fray.lock.hcl would change, as CI should")
	return cmd
}

func (a *app) showModules(result modules.Result) {
	if len(result.Modules) == 0 {
		fmt.Fprintln(a.stdout, "No module is an archive: there is nothing to get.")
	}
	for _, m := range result.Modules {
		how := "installed already"
		if m.Fetched {
			how = "installed"
		}
		if m.Was != "" {
			how += ", was " + m.Was
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", m.Locked, how)
	}
	if result.Locked {
		fmt.Fprintf(a.stdout, "%s has changed: commit it with the configuration.\n", modules.LockFile)
	}
}
