package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/policyfile"
)

// Getter installs the archives that a configuration calls, and those that they
// call.
type Getter struct {
	Registries
	// Upgrade chooses the newest versions that the calls take. Otherwise what
	// is locked stays, and only what no locked version serves is chosen.
	Upgrade bool
	// ReadOnly is for CI: a lock file that would have to change is an error.
	ReadOnly bool
	// Fetching is called with every archive before its download; may be nil.
	Fetching func(Locked)
}

// Result is what a Getter did.
type Result struct {
	Modules []Module // by source and version
	Locked  bool     // the lock file has changed
}

// Module is an archive that the configuration uses.
type Module struct {
	Locked
	Was     string // the version that was locked before, if that is another one
	Fetched bool   // it was not installed
}

// Get reads a configuration as schema.Parse does and installs what it calls.
// The lock file is written at the end, if all of it could be installed.
func (g Getter) Get(ctx context.Context, paths []string) (Result, *lang.Source, hcl.Diagnostics) {
	run := &getting{Getter: g, ctx: ctx, results: map[[2]string]*Module{}, called: map[[2]string]answer{}, lists: map[string][]release{}}
	src, diags := lang.Parser{Modules: run}.Parse(paths)
	if onlyPolicies(src.Dir()) {
		diags = nil // there is no configuration
	}
	if !diags.HasErrors() {
		diags = append(diags, run.policySets(src.Dir())...)
	}
	if diags.HasErrors() {
		return Result{}, src, diags
	}
	result, err := run.finish(src.Dir())
	if err != nil {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Modules are not locked", Detail: err.Error() + "."})
	}
	return result, src, diags
}

// onlyPolicies reports whether a directory has policies and no configuration.
func onlyPolicies(dir string) bool {
	configs, err := load.ConfigNames(files.Disk{}, dir)
	has, hasErr := policyfile.Has(dir)
	return err == nil && hasErr == nil && has && len(configs) == 0
}

// policySets installs the archives that the policies of a directory call.
func (g *getting) policySets(dir string) hcl.Diagnostics {
	if dir == "" {
		return nil
	}
	set, diags := policyfile.Parse(dir, dir)
	if diags.HasErrors() {
		return diags
	}
	for _, c := range set.Calls {
		if load.IsLocalModule(c.Source) {
			continue
		}
		if _, err := g.Installed(dir, c.Source, c.Version); err != nil {
			diags = append(diags, diagnose.ErrorAt(c.Range, "Module is not installed", diagnose.Sentence(err.Error())))
		}
	}
	return diags
}

// getting is one run of a Getter.
type getting struct {
	Getter
	ctx     context.Context
	begun   bool
	lockErr error
	old     lock
	results map[[2]string]*Module
	called  map[[2]string]answer // by archive and constraint
	lists   map[string][]release // by archive
}

type answer struct {
	module *Module
	err    error
}

var _ load.Installer = (*getting)(nil)

func (g *getting) begin(root string) error {
	if !g.begun {
		g.begun = true
		g.old, g.lockErr = readLock(root)
	}
	return g.lockErr
}

// Installed implements schema.Installer: it installs.
func (g *getting) Installed(root, source, version string) (load.InstalledModule, error) {
	src, c, err := parseCall(root, source, version)
	if err == nil {
		err = g.begin(root)
	}
	if err != nil {
		return load.InstalledModule{}, err
	}
	call := [2]string{src.Archive(), c.text}
	a, known := g.called[call]
	if !known {
		a.module, a.err = g.serve(root, src, c)
		g.called[call] = a
	}
	if a.err != nil {
		return load.InstalledModule{}, a.err
	}
	return moduleAt(cacheOf(root).place(a.module.Locked), src), nil
}

// serve chooses the version for a call and installs it.
func (g *getting) serve(root string, src Source, c constraint) (*Module, error) {
	entry, file, err := g.choose(src, c)
	if err != nil {
		return nil, err
	}
	m := g.results[entry.key()]
	if m == nil {
		m = &Module{Locked: entry, Was: g.before(src, entry, c)}
		m.Constraints = nil // those of calls that are there now
		if err := g.install(root, src, m, file); err != nil {
			return nil, err
		}
		g.results[entry.key()] = m
	}
	if !slices.Contains(m.Constraints, c.String()) {
		m.Constraints = append(m.Constraints, c.String())
		slices.Sort(m.Constraints)
	}
	return m, nil
}

// choose finds the version for a call: its lock entry, without hashes where
// there is none yet. file is the archive's name where the registry was asked.
func (g *getting) choose(src Source, c constraint) (entry Locked, file string, err error) {
	entry, locked := g.old.serving(src.Archive(), c)
	if locked && !g.Upgrade {
		return entry, "", nil
	}
	if g.ReadOnly {
		return entry, "", fmt.Errorf("%s; the file is not to be changed here: run `fray get` without --lockfile=readonly, and commit it", lacks(src, c, g.old))
	}
	releases, err := g.releases(src)
	if err != nil {
		return entry, "", err
	}
	r, err := newest(src, c, releases)
	if err != nil {
		return entry, "", err
	}
	if entry, locked = g.old.find(src.Archive(), r.version.String()); !locked {
		entry = Locked{Source: src.Archive(), Version: r.version.String()}
	}
	return entry, r.file, nil
}

func (g *getting) releases(src Source) ([]release, error) {
	if known, ok := g.lists[src.Archive()]; ok {
		return known, nil
	}
	from, err := g.open(g.ctx, src)
	if err != nil {
		return nil, err
	}
	files, err := from.list(g.ctx, src.prefix())
	if err != nil {
		return nil, err
	}
	g.lists[src.Archive()] = releasesOf(src, files)
	return g.lists[src.Archive()], nil
}

// before is the version that served a call so far, if it is another one.
func (g *getting) before(src Source, now Locked, c constraint) string {
	entry, ok := g.old.serving(src.Archive(), c)
	if there := g.old.of(src.Archive()); !ok && len(there) > 0 {
		entry = there[len(there)-1]
	}
	if entry.Version == now.Version {
		return ""
	}
	return entry.Version
}

// install makes sure that a version is where it is to be, and holds what is
// locked; of one that is not locked yet it fills in the hashes.
func (g *getting) install(root string, src Source, m *Module, file string) error {
	into := cacheOf(root)
	if m.Archive != "" && check(into.place(m.Locked), m.Locked) == nil {
		return nil
	}
	if g.Fetching != nil {
		g.Fetching(m.Locked)
	}
	if err := g.bring(into, src, m, file); err != nil {
		return fmt.Errorf("get %s: %w", m.Locked, err)
	}
	m.Fetched = true
	return nil
}

func (g *getting) bring(into cache, src Source, m *Module, file string) error {
	from, err := g.open(g.ctx, src)
	if err != nil {
		return err
	}
	if file == "" {
		if file, err = g.fileOf(src, m.Version); err != nil {
			return err
		}
	}
	if err := into.prepare(time.Now()); err != nil {
		return err
	}
	tmp, err := into.temp()
	if err != nil {
		return withRemedy(err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	got, err := fetch(g.ctx, from, file, tmp)
	if err != nil {
		return err
	}
	if m.Archive == "" {
		m.Archive, m.Files = got.archive, got.files
	}
	if got.archive != m.Archive || got.files != m.Files {
		return otherContent(m.Locked, got)
	}
	return into.adopt(got.dir, m.Locked)
}

// fileOf is the name of the archive of a locked version.
func (g *getting) fileOf(src Source, version string) (string, error) {
	releases, err := g.releases(src)
	if err != nil {
		return "", err
	}
	for _, r := range releases {
		if r.version.String() == version {
			return r.file, nil
		}
	}
	return "", fmt.Errorf("it is locked and not in %s any more; there is %s; put it back, or choose another version with `fray get --upgrade`",
		src.Registry, versionsOf(releases))
}

func otherContent(l Locked, got fetched) error {
	what, want, have := "archive", l.Archive, got.archive
	if want == have {
		what, want, have = "files", l.Files, got.files
	}
	return fmt.Errorf("the registry has another content than the one that is locked: the hash of its %s is %s, and %s has %s; "+
		"versions are not meant to change: ask its publisher what happened; if the new content is what you want, remove its block from %s and run `fray get` again",
		what, have, LockFile, want, LockFile)
}

// finish writes the lock file.
func (g *getting) finish(root string) (Result, error) {
	if err := g.begin(root); err != nil {
		return Result{}, err
	}
	var next lock
	for _, m := range g.results {
		next = append(next, m.Locked)
	}
	next.sort()
	var result Result
	for _, l := range next {
		result.Modules = append(result.Modules, *g.results[l.key()])
	}
	now, err := os.ReadFile(filepath.Join(root, LockFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return result, fmt.Errorf("read the lock file: %w", err)
	}
	if len(next) == 0 && err != nil || len(next) > 0 && bytes.Equal(now, next.encode()) {
		return result, nil
	}
	if g.ReadOnly {
		return result, fmt.Errorf("%s is not what `fray get` would write now (%s), and is not to be changed here: run `fray get` without --lockfile=readonly, and commit it",
			LockFile, g.old.difference(next))
	}
	result.Locked = true
	return result, writeLock(root, next)
}
