package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// site is where a stack is: of which configuration, kept where, and in which
// workspace. The default workspace is where the fray block says; the others are
// whole stores of their own below it.
type site struct {
	dir       string // of the configuration, absolute
	settings  schema.Settings
	workspace string
	chosenBy  string // a flag or a variable, as it was given; "": workspaceFile
}

const (
	workspaceVariable = "FRAY_WORKSPACE"
	// workspaceFile names the selected workspace, in the configuration's .fray.
	workspaceFile = "workspace"
	// workspaceFolder holds the workspaces, in the place of the default one.
	workspaceFolder = "workspaces"
	// workspaceKey is an object by which a workspace exists: made first, removed last.
	workspaceKey = "workspace.json"
)

// siteOf is the site of a configuration: the workspace is the one of --workspace,
// of the environment, or the one that was selected, in this order.
func siteOf(dir string, settings schema.Settings, flag string) (site, error) {
	at := site{dir: dir, settings: settings}
	for _, given := range []struct{ by, name string }{
		{"--workspace=", flag},
		{workspaceVariable + "=", os.Getenv(workspaceVariable)},
	} {
		if given.name == "" {
			continue
		}
		at.workspace, at.chosenBy = given.name, given.by+given.name
		if err := validWorkspace(given.name); err != nil {
			return at, fmt.Errorf("%s: %w", at.chosenBy, err)
		}
		return at, nil
	}
	var err error
	at.workspace, err = at.selected()
	return at, err
}

func validWorkspace(name string) error {
	if schema.ValidName(name) {
		return nil
	}
	return errors.New("the name of a workspace is a letter or underscore, then letters, digits, underscores and hyphens, at most 63 in all")
}

// selected is the workspace that fray workspace select has chosen.
func (at site) selected() (string, error) {
	file := filepath.Join(at.dir, ".fray", workspaceFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return schema.DefaultWorkspace, nil
	}
	if err != nil {
		return "", fmt.Errorf("find the selected workspace: %w%s", err, cureOf(err))
	}
	name := strings.TrimSpace(string(data))
	if validWorkspace(name) != nil {
		return "", fmt.Errorf("find the selected workspace: %s holds %.40q, which is no name of a workspace; fray workspace select NAME writes it anew", file, name)
	}
	return name, nil
}

// cureOf is what to do about a directory of state that is somebody else's, "" for
// other errors.
func cureOf(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; the directory belongs to whoever applied here first: be that user, or keep the state where both may go (docs/guides/state.md)"
	}
	return ""
}

// choose makes a workspace the selected one.
func (at site) choose(name string) error {
	folder := filepath.Join(at.dir, ".fray")
	if err := makeIgnored(folder); err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, workspaceFile), []byte(name+"\n"))
}

// in is the same site in another workspace.
func (at site) in(workspace string) site {
	at.workspace, at.chosenBy = workspace, ""
	return at
}

func (at site) isDefault() bool { return at.workspace == schema.DefaultWorkspace }

// named is the workspace where it has to be said, "" for the default one.
func (at site) named() string {
	if at.isDefault() {
		return ""
	}
	return at.workspace
}

// location is that of the workspace's store.
func (at site) location() (location, error) {
	b := at.settings.Backend
	if !at.isDefault() {
		below := path.Join(workspaceFolder, at.workspace)
		b.Prefix = path.Join(b.Prefix, below)
		b.Path = filepath.Join(b.Path, filepath.FromSlash(below))
	}
	return locationOf(b)
}

// root is where this machine keeps what belongs to the workspace: the store
// itself unless that is in a bucket.
func (at site) root(where location) string {
	if !where.inBucket() {
		return string(where)
	}
	root := filepath.Join(at.dir, ".fray")
	if at.isDefault() {
		return root
	}
	return filepath.Join(root, workspaceFolder, at.workspace)
}

// workspaces lists those that exist, the default one first. The store tells
// what is below it; what has no marker is only left over.
func (at site) workspaces(ctx context.Context) ([]string, error) {
	where, err := at.in(schema.DefaultWorkspace).location()
	if err != nil {
		return nil, err
	}
	names := []string{schema.DefaultWorkspace}
	base, err := where.open(ctx)
	if errors.Is(err, fs.ErrNotExist) && !where.inBucket() {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	folders, ok := store.AsFoldered(base)
	if !ok {
		return nil, fmt.Errorf("%s cannot tell which workspaces there are", where)
	}
	candidates, err := folders.Folders(ctx, workspaceFolder+"/")
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	found := make([]bool, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiers)
	for i, name := range candidates {
		group.Go(func() (err error) {
			if schema.ValidName(name) {
				found[i], err = exists(ctx, base, path.Join(workspaceFolder, name, workspaceKey))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	for i, name := range candidates {
		if found[i] && name != schema.DefaultWorkspace {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

func exists(ctx context.Context, s store.Store, key string) (bool, error) {
	_, err := s.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// openWorkspace opens the store of a workspace that is not the default one.
func (at site) openWorkspace(ctx context.Context, where location) (store.Store, error) {
	s, err := where.open(ctx)
	if errors.Is(err, fs.ErrNotExist) && !where.inBucket() {
		return nil, at.missing(ctx)
	}
	if err != nil {
		return nil, err
	}
	there, err := exists(ctx, s, workspaceKey)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", at.workspace, err)
	}
	if !there {
		return nil, at.missing(ctx)
	}
	return s, nil
}

// missing is the error of a workspace that does not exist.
func (at site) missing(ctx context.Context) error {
	names, err := at.workspaces(ctx)
	if err != nil {
		return err
	}
	return at.notAmong(names)
}

// notAmong is the error of a workspace that is none of those that exist.
func (at site) notAmong(names []string) error {
	where, err := at.in(schema.DefaultWorkspace).location()
	if err != nil {
		return err
	}
	if at.chosenBy == "" {
		return fmt.Errorf("the selected workspace %q is not in %s any more; fray workspace select NAME chooses another one, fray workspace new %s makes it again",
			at.workspace, where, at.workspace)
	}
	hint := "there are " + strings.Join(names, ", ")
	if len(names) == 1 {
		hint = "there is only " + names[0]
	}
	if near := schema.Nearest(at.workspace, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("%s: there is no such workspace in %s; fray workspace new %s makes it; %s", at.chosenBy, where, at.workspace, hint)
}
