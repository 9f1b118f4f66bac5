package stack

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

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Site is where a stack is: of which configuration, kept where, and in which
// workspace. The default workspace is where the fray block puts it; the others are
// whole stores of their own below it.
type Site struct {
	Dir       string // of the configuration, absolute
	Settings  schema.Settings
	Workspace string
	ChosenBy  string // a flag or a variable, as it was given; "": workspaceFile
}

const (
	// WorkspaceVariable names the workspace where no flag does.
	WorkspaceVariable = "FRAY_WORKSPACE"
	// workspaceFile names the selected workspace, in the configuration's .fray.
	workspaceFile = "workspace"
	// workspaceFolder holds the workspaces, in the place of the default one.
	workspaceFolder = "workspaces"
	// WorkspaceKey is an object by which a workspace exists: made first, removed last.
	WorkspaceKey = "workspace.json"
)

// SiteOf is the site of a configuration: the workspace is the one of --workspace,
// of the environment, or the one that was selected, in this order.
func SiteOf(dir string, settings schema.Settings, flag string) (Site, error) {
	at := Site{Dir: dir, Settings: settings}
	for _, given := range []struct{ by, name string }{
		{"--workspace=", flag},
		{WorkspaceVariable + "=", os.Getenv(WorkspaceVariable)},
	} {
		if given.name == "" {
			continue
		}
		at.Workspace, at.ChosenBy = given.name, given.by+given.name
		if err := ValidWorkspace(given.name); err != nil {
			return at, fmt.Errorf("%s: %w", at.ChosenBy, err)
		}
		return at, nil
	}
	var err error
	at.Workspace, err = at.selected()
	return at, err
}

// ValidWorkspace returns what is wrong with the name of a workspace.
func ValidWorkspace(name string) error {
	if schema.ValidName(name) {
		return nil
	}
	return errors.New("the name of a workspace is a letter or underscore, then letters, digits, underscores and hyphens, at most 63 in all")
}

// selected is the workspace that fray workspace select has chosen.
func (at Site) selected() (string, error) {
	file := filepath.Join(at.Dir, ".fray", workspaceFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return schema.DefaultWorkspace, nil
	}
	if err != nil {
		return "", fmt.Errorf("find the selected workspace: %w%s", err, cureOf(err))
	}
	name := strings.TrimSpace(string(data))
	if ValidWorkspace(name) != nil {
		return "", fmt.Errorf("find the selected workspace: %s holds %.40q, which is no name of a workspace; fray workspace select NAME writes it anew", file, name)
	}
	return name, nil
}

// cureOf is the remedy for a directory of state that belongs to another user, "" for
// other errors.
func cureOf(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "; the directory belongs to the user who applied here first: become that user, or keep the state where both have access (docs/guides/state.md)"
	}
	return ""
}

// Choose makes a workspace the selected one.
func (at Site) Choose(name string) error {
	folder := filepath.Join(at.Dir, ".fray")
	if err := makeIgnored(folder); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(folder, workspaceFile), []byte(name+"\n"), 0o600)
}

// InWorkspace is the same site in another workspace.
func (at Site) InWorkspace(workspace string) Site {
	at.Workspace, at.ChosenBy = workspace, ""
	return at
}

// IsDefault reports whether the workspace is the default one.
func (at Site) IsDefault() bool { return at.Workspace == schema.DefaultWorkspace }

// Named is the workspace where messages must name it, "" for the default one.
func (at Site) Named() string {
	if at.IsDefault() {
		return ""
	}
	return at.Workspace
}

// Location is that of the workspace's store.
func (at Site) Location() (Location, error) {
	b := at.Settings.Backend
	if !at.IsDefault() {
		below := path.Join(workspaceFolder, at.Workspace)
		b.Prefix = path.Join(b.Prefix, below)
		b.Path = filepath.Join(b.Path, filepath.FromSlash(below))
	}
	return locationOf(b)
}

// root is where this machine keeps what belongs to the workspace: the store
// itself unless that is in a bucket.
func (at Site) root(where Location) string {
	if !where.InBucket() {
		return string(where)
	}
	root := filepath.Join(at.Dir, ".fray")
	if at.IsDefault() {
		return root
	}
	return filepath.Join(root, workspaceFolder, at.Workspace)
}

// Workspaces lists those that exist, the default one first. The store tells
// what is below it; what has no marker is only left over.
func (at Site) Workspaces(ctx context.Context) ([]string, error) {
	where, err := at.InWorkspace(schema.DefaultWorkspace).Location()
	if err != nil {
		return nil, err
	}
	names := []string{schema.DefaultWorkspace}
	base, err := where.Open(ctx)
	if errors.Is(err, fs.ErrNotExist) && !where.InBucket() {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	folders, ok := store.AsFoldered(base)
	if !ok {
		return nil, fmt.Errorf("%s cannot list workspaces", where)
	}
	candidates, err := folders.Folders(ctx, workspaceFolder+"/")
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	found := make([]bool, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Copiers)
	for i, name := range candidates {
		group.Go(func() (err error) {
			if schema.ValidName(name) {
				found[i], err = exists(ctx, base, path.Join(workspaceFolder, name, WorkspaceKey))
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

// OpenWorkspace opens the store of a workspace that is not the default one.
func (at Site) OpenWorkspace(ctx context.Context, where Location) (store.Store, error) {
	s, err := where.Open(ctx)
	if errors.Is(err, fs.ErrNotExist) && !where.InBucket() {
		return nil, at.missing(ctx)
	}
	if err != nil {
		return nil, err
	}
	there, err := exists(ctx, s, WorkspaceKey)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", at.Workspace, err)
	}
	if !there {
		return nil, at.missing(ctx)
	}
	return s, nil
}

// missing is the error of a workspace that does not exist.
func (at Site) missing(ctx context.Context) error {
	names, err := at.Workspaces(ctx)
	if err != nil {
		return err
	}
	return at.NotAmong(names)
}

// NotAmong is the error of a workspace that is none of those that exist.
func (at Site) NotAmong(names []string) error {
	where, err := at.InWorkspace(schema.DefaultWorkspace).Location()
	if err != nil {
		return err
	}
	if at.ChosenBy == "" {
		return fmt.Errorf("the selected workspace %q is not in %s any more; fray workspace select NAME chooses another one, fray workspace new %s makes it again",
			at.Workspace, where, at.Workspace)
	}
	hint := "there are " + strings.Join(names, ", ")
	if len(names) == 1 {
		hint = "there is only " + names[0]
	}
	if near := schema.Nearest(at.Workspace, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("%s: there is no such workspace in %s; fray workspace new %s makes it; %s", at.ChosenBy, where, at.Workspace, hint)
}
