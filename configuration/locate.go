package configuration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// Locate finds the stack of a directory for verbs that act on what is there
// rather than on what the files declare: it works with files that are broken or
// gone, as long as the state is where it would be by default.
func Locate(ctx context.Context, a *terminal.Terminal, paths []string, flags Options) (*Loaded, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	l := &Loaded{Paths: paths, Bundles: map[string]string{}, Config: &schema.Config{}}
	where, err := LocateSite(a, paths, flags)
	if err != nil {
		return nil, err
	}
	if l.Stack, err = stack.Open(ctx, where, false); err != nil {
		return nil, err
	}
	if l.Document, err = l.Stack.Load(ctx); err != nil {
		return nil, err
	}
	if err := stack.NotePlace(a, l.Stack, flags.Changes); err != nil {
		return nil, err
	}
	if l.Stack.Fresh {
		return nil, fmt.Errorf("%w in %s: nothing was applied there yet", ErrNoState, l.Stack.At)
	}
	l.Site, l.Desired = where, l.Document.Desired
	l.Sealer, err = l.Stack.Sealer(ctx, l.Document, false)
	return l, err
}

// ErrNoState reports that a stack has not begun.
var ErrNoState = errors.New("there is no state")

// LocateSite reads where the state is from the files, or falls back to the default
// where they cannot be read.
func LocateSite(a *terminal.Terminal, paths []string, flags Options) (stack.Site, error) {
	src, diags := Parse(paths)
	if !diags.HasErrors() {
		settings, more := src.Settings(flags.Local)
		if !more.HasErrors() {
			return stack.SiteOf(src.Dir(), settings, flags.Workspace)
		}
		diags = append(diags, more...)
	}
	dir := paths[0]
	if info, err := os.Stat(dir); err != nil {
		return stack.Site{}, fmt.Errorf("open configuration: %w", err)
	} else if !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return stack.Site{}, err
	}
	fallback := schema.Settings{Backend: schema.Backend{Kind: schema.BackendLocal, Path: filepath.Join(dir, ".fray")}}
	at, err := stack.SiteOf(dir, fallback, flags.Workspace)
	if err != nil {
		return at, err
	}
	where, err := at.Location()
	if err != nil {
		return at, err
	}
	if _, err := os.Stat(filepath.Join(string(where), store.StateKey)); err != nil {
		if reported := a.Diagnostics(terminal.FilesOf(src), diags); reported != nil {
			return at, reported
		}
		return at, errors.New("there is no configuration and no state here")
	}
	return at, nil
}
