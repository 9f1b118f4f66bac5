package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
)

// testFlags are the flags of fray test.
type testFlags struct {
	configFlags
	filter      []string
	directory   string
	json        bool
	verbose     bool
	parallelism int
}

func testCommand(a *app) *cobra.Command {
	var flags testFlags
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the tests of a configuration on this machine",
		Long: `Run the *.fraytest.hcl files beside the configuration and in tests/. Each run block
plans, or applies with real processes, and its assert blocks say what must hold.

Everything is on this machine, as with --local, and in a state of its own: the
stack is not touched. What a file's runs started is taken down at its end, also
after failures and Ctrl-C; what a killed fray test left is removed by the next one.

Exit code 1 says that something failed. With --json, standard output has one JSON
object on a line for each event (docs/test-json.md).`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.parallelism < 1 {
				return fmt.Errorf("--parallelism=%d: want at least 1", flags.parallelism)
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.test(cmd.Context(), dir, flags)
		},
	}
	flags.register(cmd)
	_ = cmd.Flags().MarkHidden("local") // it always is
	_ = cmd.Flags().MarkHidden("input") // nobody is asked
	cmd.Flags().StringArrayVar(&flags.filter, "filter", nil, "run only the tests of `FILE`; may be repeated")
	cmd.Flags().StringVar(&flags.directory, "test-directory", "tests", "look for tests in `DIR`, too")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON, an object on each line (docs/test-json.md)")
	cmd.Flags().BoolVar(&flags.verbose, "verbose", false, "print the plan of each run, and what an apply does")
	cmd.Flags().IntVar(&flags.parallelism, "parallelism", 1, "run the tests of `N` files at once")
	return cmd
}

// tester runs test files.
type tester struct {
	app   *app
	flags testFlags
	dir   string         // of the configuration, as it was given
	src   *schema.Source // of the configuration
	site  *testSite
	soft  context.Context // ends with the first Ctrl-C
	hard  context.Context // ends with the second
}

func (a *app) test(ctx context.Context, dir string, flags testFlags) error {
	src, diags := parse([]string{dir})
	if err := a.diagnostics(src.Files(), errorsOf(diags)); err != nil {
		return err
	}
	paths, err := testFiles(dir, flags)
	if err != nil {
		return err
	}
	report := newTestReport(a, flags)
	if len(paths) == 0 {
		a.warn(fmt.Sprintf("there are no tests: no *%s in %s or in %s", schema.TestEnding, dir, filepath.Join(dir, flags.directory)))
	}
	soft, hard, stop := a.interruptibleAs(ctx,
		func() string {
			return "Interrupted: no further tests; taking down what they started. Again to leave at once."
		},
		"Leaving at once. What is still up ends by itself, as its files are removed.")
	defer stop()
	site, err := newTestSite(soft, a)
	if err != nil {
		return untouched(soft, err)
	}
	t := &tester{app: a, flags: flags, dir: dir, src: src, site: site, soft: soft, hard: hard}
	t.files(paths, report)
	report.summary()
	if err := site.remove(); err != nil {
		a.warn(err.Error())
	}
	switch {
	case soft.Err() != nil:
		return &exit{code: exitInterrupted, msg: "interrupted"}
	case report.failed():
		return errReported
	}
	return nil
}

// files runs files, several at once if that is asked for.
func (t *tester) files(paths []string, report *testReport) {
	var group sync.WaitGroup
	slots := make(chan struct{}, t.flags.parallelism)
	for i, path := range paths {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			one := report.file(path)
			defer one.end()
			newTestedFile(t, one, path, fmt.Sprintf("%d", i)).run()
		})
	}
	group.Wait()
}

// testFiles lists the files with tests, those that --filter names if there are any.
func testFiles(dir string, flags testFlags) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open configuration: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("fray test runs the tests of a directory; to run one file of tests, use --filter=%s", shellWord(dir))
	}
	var paths []string
	for _, in := range []string{dir, filepath.Join(dir, flags.directory)} {
		found, err := filepath.Glob(filepath.Join(in, "*"+schema.TestEnding))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(flags.filter) == 0 {
		return paths, nil
	}
	var chosen []string
	for _, name := range flags.filter {
		i := slices.IndexFunc(paths, func(path string) bool { return path == filepath.Clean(name) || path == filepath.Join(dir, name) })
		if i < 0 {
			hint := ""
			if near := schema.Nearest(filepath.Clean(name), paths); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return nil, errors.New("--filter=" + name + ": there is no such file of tests" + hint)
		}
		chosen = append(chosen, paths[i])
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}
