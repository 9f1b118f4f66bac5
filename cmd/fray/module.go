package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/modules"
	"github.com/fray-ml/fray/terminal"
)

func moduleCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "module", Short: "Publish modules"}
	cmd.AddCommand(modulePublishCommand(a))
	return cmd
}

func modulePublishCommand(a *terminal.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "publish DIR SOURCE VERSION",
		Short: "Put a directory into a registry, as a version of a module",
		Long: `Put a directory into a registry, as a version of a module:

  fray module publish ./pool gs://acme/modules/pool 1.4.0

A registry is a directory in a bucket or on this machine (file:///srv/modules/pool).
The archive, pool-1.4.0.tar.zst, is always the same for the same files: times and
owners are left out, and so are .git, .fray and what .gitignore excludes. A
version never changes: other files under one that is there are rejected.`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := modules.ParseSource(args[1])
			if err != nil {
				return err
			}
			return publishModule(cmd.Context(), a, args[0], modules.Publication{Source: src, Version: args[2]})
		},
	}
}

func publishModule(ctx context.Context, a *terminal.Terminal, dir string, p modules.Publication) error {
	tmp, err := os.MkdirTemp("", "fray-publish-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	p.Archive = filepath.Join(tmp, "archive")
	files, err := packModule(dir, p.Archive)
	if err != nil {
		return err
	}
	if err := checkModule(a, dir, files); err != nil {
		return err
	}
	there, err := registries().Publish(ctx, p)
	if err != nil {
		return err
	}
	if there {
		fmt.Fprintf(a.Stdout, "%s %s is published already, with the same files.\n", p.Source.Archive(), p.Version)
		return nil
	}
	fmt.Fprintf(a.Stdout, "Published %s %s: %d files.\n", p.Source.Archive(), p.Version, len(files))
	return nil
}

func packModule(dir, to string) (files []string, err error) {
	f, err := os.Create(to)
	if err != nil {
		return nil, err
	}
	_, files, err = bundle.Pack(dir, f)
	return files, errors.Join(err, f.Close())
}

// checkModule finds mistakes that every user of the module would find.
func checkModule(a *terminal.Terminal, dir string, files []string) error {
	var diags hcl.Diagnostics
	sources := map[string]*hcl.File{}
	for _, name := range files {
		if path.Ext(name) != ".hcl" || strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		shown := filepath.Join(dir, filepath.FromSlash(name))
		data, err := os.ReadFile(shown)
		if err != nil {
			return fmt.Errorf("read module: %w", err)
		}
		_, found := format.Source(data, shown)
		diags = append(diags, found...)
		sources[shown] = &hcl.File{Bytes: data}
	}
	if len(sources) == 0 {
		return fmt.Errorf("%s has no .hcl file that would be in the archive; name the directory of the module, and see what .gitignore excludes", dir)
	}
	return a.Diagnostics(sources, diags)
}
