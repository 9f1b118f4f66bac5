package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/terminal"
)

// Exit codes of fmt, as Terraform's.
const (
	exitUnformattable = 2 // something could not be read, parsed or written
	exitUnformatted   = 3 // --check: something would change
)

// formatFlags say what becomes of files that are not in the canonical style.
type formatFlags struct {
	check, diff, list, write, recursive bool
}

// printsResult reports whether the formatted text itself is what is asked for.
func (f *formatFlags) printsResult() bool { return !f.check && !f.diff && !f.list && !f.write }

func fmtCommand(a *terminal.Terminal) *cobra.Command {
	var flags formatFlags
	cmd := &cobra.Command{
		Use:   "fmt [DIR | FILE... | -]",
		Short: "Rewrite files in the canonical style",
		Long: `Rewrite .hcl and .frayvars files in the canonical style, and print the names of
those that changed. "-" formats standard input to standard output. Hidden files
and directories are left alone, and so are directories behind links.

Besides spaces, old forms become those of today, as terraform fmt does it:
"${var.x}" alone becomes var.x, type = "list" becomes list(string), and labels
get quotes.

A file that does not parse is reported and left as it is, and the others are
formatted all the same. Exit codes are those of terraform fmt: 2 if anything
could not be formatted, 3 if --check found something to change.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			if len(args) == 1 && args[0] == "-" {
				return formatStdin(a, flags)
			}
			if flags.check {
				flags.write = false
			}
			return formatAll(a, args, flags)
		},
	}
	cmd.Flags().BoolVar(&flags.check, "check", false, "change nothing; exit 3 if something would change")
	cmd.Flags().BoolVar(&flags.diff, "diff", false, "print what changes, as a unified diff")
	cmd.Flags().BoolVarP(&flags.recursive, "recursive", "r", false, "format the directories below as well")
	cmd.Flags().BoolVar(&flags.write, "write", true, "write the files; with --write=false --list=false the result is printed")
	cmd.Flags().BoolVar(&flags.list, "list", true, "print the names of files that are not in the canonical style")
	return cmd
}

// formatted is what became of one file.
type formatted struct {
	file  formatFile
	src   []byte // where it is to be shown
	out   []byte // likewise
	dirty bool   // was not in the canonical style
	diags hcl.Diagnostics
	err   error
}

func formatStdin(a *terminal.Terminal, flags formatFlags) error {
	src, err := io.ReadAll(a.Stdin)
	if err != nil {
		return &terminal.Exit{Code: exitUnformattable, Msg: fmt.Sprintf("read standard input: %v", err)}
	}
	flags.list, flags.write = false, false
	const name = "<stdin>"
	f := formatted{file: formatFile{shown: name}, src: src}
	f.out, f.diags = format.Source(src, name)
	f.dirty = !bytes.Equal(f.src, f.out)
	failed, err := showFormatted(a, &f, flags)
	switch {
	case err != nil:
		return err
	case failed:
		return &terminal.Exit{Code: exitUnformattable}
	case flags.check && f.dirty:
		return &terminal.Exit{Code: exitUnformatted, Msg: "standard input is not in the canonical style"}
	}
	return nil
}

// formatAll formats files and directories: several at a time, shown in order.
func formatAll(a *terminal.Terminal, paths []string, flags formatFlags) error {
	files, problems := findFormatFiles(paths, flags.recursive)
	results := make([]chan formatted, len(files))
	for i := range results {
		results[i] = make(chan formatted, 1)
	}
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0) + 1) // and this, which hands the work out
	work.Go(func() error {
		for i, file := range files {
			work.Go(func() error {
				results[i] <- file.format(flags)
				return nil
			})
		}
		return nil
	})
	failed, dirty := len(problems) > 0, 0
	for _, err := range problems {
		a.Fail(err.Error())
	}
	var broken error
	for _, result := range results {
		f := <-result
		bad, err := showFormatted(a, &f, flags)
		broken = errors.Join(broken, err)
		failed = failed || bad
		if f.dirty {
			dirty++
		}
	}
	if err := errors.Join(work.Wait(), broken); err != nil {
		return err
	}
	switch {
	case failed:
		return &terminal.Exit{Code: exitUnformattable}
	case flags.check && dirty == 1:
		return &terminal.Exit{Code: exitUnformatted, Msg: "1 file is not in the canonical style; run fray fmt"}
	case flags.check && dirty > 0:
		return &terminal.Exit{Code: exitUnformatted, Msg: fmt.Sprintf("%d files are not in the canonical style; run fray fmt", dirty)}
	}
	return nil
}

// showFormatted prints what became of a file, and reports whether it failed.
func showFormatted(a *terminal.Terminal, f *formatted, flags formatFlags) (failed bool, err error) {
	if f.err != nil {
		a.Fail(f.err.Error())
		return true, nil
	}
	if len(f.diags) > 0 {
		err := a.Diagnostics(map[string]*hcl.File{f.file.shown: {Bytes: f.src}}, f.diags)
		if err != nil && !errors.Is(err, terminal.ErrReported) {
			return true, err
		}
		if f.diags.HasErrors() {
			return true, nil
		}
	}
	var out bytes.Buffer
	if f.dirty && flags.list {
		fmt.Fprintln(&out, f.file.shown)
	}
	if f.dirty && flags.diff {
		out.Write(unifiedDiff(f.file.shown, f.src, f.out))
	}
	if flags.printsResult() {
		out.Write(f.out)
	}
	_, err = a.Stdout.Write(out.Bytes())
	return false, err
}

// unifiedDiff is what formatting changes, as patch reads it.
func unifiedDiff(name string, before, after []byte) []byte {
	name = filepath.ToSlash(name)
	_, patch, _ := bytes.Cut(diff.Diff("old/"+name, before, "new/"+name, after), []byte("\n")) // without the command line
	return patch
}
