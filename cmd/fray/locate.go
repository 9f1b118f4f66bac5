package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// locate finds the stack of a directory for verbs that act on what is there
// rather than on what the files say: it works with files that are broken or
// gone, as long as the state is where it would be by default.
func (a *app) locate(ctx context.Context, paths []string, flags configFlags) (*loaded, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	l := &loaded{paths: paths, bundles: map[string]string{}, cfg: &schema.Config{}}
	where, err := a.siteOf(paths, flags)
	if err != nil {
		return nil, err
	}
	if l.stack, err = openStack(ctx, where, false); err != nil {
		return nil, err
	}
	if l.doc, err = l.stack.load(ctx); err != nil {
		return nil, err
	}
	a.notePlace(l.stack)
	if l.stack.fresh {
		return nil, fmt.Errorf("%w in %s: nothing was applied there yet", errNoState, l.stack.at)
	}
	l.desired = l.doc.Desired
	l.sealer, err = l.stack.sealer(ctx, l.doc, false)
	return l, err
}

// errNoState says that a stack has not begun.
var errNoState = errors.New("there is no state")

// siteOf reads where the state is from the files, or falls back to the default
// where they cannot be read.
func (a *app) siteOf(paths []string, flags configFlags) (site, error) {
	src, diags := parse(paths)
	if !diags.HasErrors() {
		settings, more := src.Settings(flags.local)
		if !more.HasErrors() {
			return siteOf(src.Dir(), settings, flags.workspace)
		}
		diags = append(diags, more...)
	}
	dir := paths[0]
	if info, err := os.Stat(dir); err != nil {
		return site{}, fmt.Errorf("open configuration: %w", err)
	} else if !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return site{}, err
	}
	fallback := schema.Settings{Backend: schema.Backend{Kind: schema.BackendLocal, Path: filepath.Join(dir, ".fray")}}
	at, err := siteOf(dir, fallback, flags.workspace)
	if err != nil {
		return at, err
	}
	where, err := at.location()
	if err != nil {
		return at, err
	}
	if _, err := os.Stat(filepath.Join(string(where), store.StateKey)); err != nil {
		if reported := a.diagnostics(filesOf(src), diags); reported != nil {
			return at, reported
		}
		return at, errors.New("there is no configuration and no state here")
	}
	return at, nil
}
