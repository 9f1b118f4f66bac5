// Command bench measures fray and prints each number beside what it is to be
// compared with. It asserts nothing: numbers on a shared machine are for people.
// Run it with `make bench`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

// bench is one run: the binary under test, a scratch directory, and the table.
type bench struct {
	ctx  context.Context
	fray string
	dir  string
	root string // of the project
	out  *tabwriter.Writer
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fray-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	b := &bench{
		ctx: ctx, dir: dir, root: root, fray: filepath.Join(dir, "fray"),
		out: tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0),
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.fray, "./cmd/fray")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build fray: %w\n%s", err, out)
	}
	b.row("WHAT", "MEASURED", "TARGET", "BESIDE")
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"startup", b.startup},
		{"quickstart", b.quickstart},
		{"plan", b.plans},
		{"apply", b.applies},
		{"recovery", b.recoveries},
	} {
		if len(os.Args) > 1 && os.Args[1] != part.name {
			continue
		}
		if err := part.do(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if err := b.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) row(what, measured, target, beside string) {
	_, _ = fmt.Fprintf(b.out, "%s\t%s\t%s\t%s\n", what, measured, target, beside)
}

// scratch makes a directory with one configuration in it.
func (b *bench) scratch(name, config string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte(config), 0o644)
}

// command runs the binary under test in a directory.
func (b *bench) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, b.fray, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"))
	return cmd
}
