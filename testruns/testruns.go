package testruns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/terminal"
)

// Options are the flags of fray test.
type Options struct {
	configuration.Options
	Filter      []string
	Directory   string
	JSON        bool
	Verbose     bool
	Parallelism int
}

// tester runs test files.
type tester struct {
	terminal *terminal.Terminal
	flags    Options
	dir      string       // of the configuration, as it was given
	src      *lang.Source // of the configuration
	site     *testSite
	soft     context.Context // ends with the first Ctrl-C
	hard     context.Context // ends with the second
}

// Run runs the tests of a directory and reports them.
func Run(ctx context.Context, a *terminal.Terminal, dir string, flags Options) error {
	src, diags := configuration.Parse([]string{dir})
	if err := a.Diagnostics(src.Files(), terminal.ErrorsOf(diags)); err != nil {
		return err
	}
	paths, err := filesOf(dir, flags, load.TestEnding)
	if err != nil {
		return err
	}
	report := newTestReport(a, flags)
	if len(paths) == 0 {
		a.Warn(fmt.Sprintf("there are no tests: no *%s in %s or in %s", load.TestEnding, dir, filepath.Join(dir, flags.Directory)))
	}
	soft, hard, stop := a.Interruptible(ctx,
		func() string {
			return "Interrupted: no further tests; taking down what they started. Again to leave at once."
		},
		"Leaving at once. What is still up ends by itself, as its files are removed.")
	defer stop()
	site, err := newTestSite(soft, a)
	if err != nil {
		return terminal.Interrupted(soft, err)
	}
	t := &tester{terminal: a, flags: flags, dir: dir, src: src, site: site, soft: soft, hard: hard}
	t.files(paths, report)
	report.summary()
	if err := site.remove(); err != nil {
		a.Warn(err.Error())
	}
	switch {
	case soft.Err() != nil:
		return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted"}
	case report.failed():
		return terminal.ErrReported
	}
	return nil
}

// files runs files, several at once if that is asked for.
func (t *tester) files(paths []string, report *testReport) {
	var group sync.WaitGroup
	slots := make(chan struct{}, t.flags.Parallelism)
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

// filesOf lists the files of tests of an ending, those that --filter names if there are any.
func filesOf(dir string, flags Options, ending string) ([]string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open configuration: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("fray test runs the tests of a directory; to run one file of tests, use --filter=%s", terminal.ShellQuote(dir))
	}
	var paths []string
	for _, in := range []string{dir, filepath.Join(dir, flags.Directory)} {
		found, err := filepath.Glob(filepath.Join(in, "*"+ending))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(flags.Filter) == 0 {
		return paths, nil
	}
	var chosen []string
	for _, name := range flags.Filter {
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
