package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
)

func fmtCommand(a *app) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt [DIR | FILE... | -]",
		Short: "Rewrite files in the canonical style",
		Long: `Rewrite files in the canonical style and print the names of those that changed.
"-" formats standard input to standard output; with --check it prints nothing.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			if len(args) == 1 && args[0] == "-" {
				return a.formatStdin(check)
			}
			changed, err := a.formatAll(args, check)
			if err != nil {
				return err
			}
			if check && changed > 0 {
				files := "1 file is"
				if changed > 1 {
					files = fmt.Sprintf("%d files are", changed)
				}
				return &exit{code: exitError, msg: files + " not in the canonical style; run fray fmt"}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; exit 1 if something would change")
	return cmd
}

func (a *app) formatStdin(check bool) error {
	src, err := io.ReadAll(a.stdin)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	out, diags := schema.Format(src, "<stdin>")
	if err := a.diagnostics(map[string]*hcl.File{"<stdin>": {Bytes: src}}, diags); err != nil {
		return err
	}
	if check {
		if !bytes.Equal(src, out) {
			return &exit{code: exitError, msg: "standard input is not in the canonical style"}
		}
		return nil
	}
	_, err = a.stdout.Write(out)
	return err
}

// formatAll formats files and directories and returns how many files change.
func (a *app) formatAll(paths []string, check bool) (int, error) {
	changed := 0
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return changed, fmt.Errorf("format: %w", err)
		} else if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.hcl")); err != nil {
				return changed, err
			}
		}
		for _, file := range files {
			did, err := a.formatFile(file, check)
			if err != nil {
				return changed, err
			}
			if did {
				changed++
			}
		}
	}
	return changed, nil
}

func (a *app) formatFile(path string, check bool) (bool, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("format: %w", err)
	}
	out, diags := schema.Format(src, path)
	if err := a.diagnostics(map[string]*hcl.File{path: {Bytes: src}}, diags); err != nil {
		return false, err
	}
	if bytes.Equal(src, out) {
		return false, nil
	}
	fmt.Fprintln(a.stdout, path)
	if check {
		return true, nil
	}
	return true, writeFile(path, out)
}
