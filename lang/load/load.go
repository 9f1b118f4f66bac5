package load

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/diagnose"
)

// Directory are the parsed files of one directory, and those of the modules
// that they call.
type Directory struct {
	Dir    string // absolute
	Shown  string // as diagnostics name it
	Bodies []*hclsyntax.Body
	Calls  map[string]*Directory
	// archive is the directory of the archive that they are in, "" if in none.
	Archive string
}

// Installer finds modules that are archives.
type Installer interface {
	// Installed returns where the module of a source is, of a version that the
	// constraint (empty for none) allows, or an error with the command to get it.
	// root is the configuration's directory.
	Installed(root, source, version string) (InstalledModule, error)
}

// InstalledModule is where a module is that came in an archive.
type InstalledModule struct {
	Archive string // absolute directory of what is in the archive
	Dir     string // that of the module, the same or one below it
}

// maxModules bounds the calls of a configuration: modules that call others
// twice, those yet others twice, and so on, would never end.
const maxModules = 10_000

// moduleLoader reads the modules that files call. Each directory is read once.
type moduleLoader struct {
	*diagnose.Report
	source    *Source
	installer Installer
	read      map[string]*Directory
	files     []File // of all modules
	calls     int
}

// moduleCall is one call on the way to a directory.
type moduleCall struct {
	files *Directory
	above *moduleCall
}

func (l *moduleLoader) load() {
	queue := []*moduleCall{{files: l.source.Root}}
	for len(queue) > 0 {
		call := queue[0]
		queue = queue[1:]
		seen := call.files.Calls != nil // another call has read what it calls
		if !seen {
			call.files.Calls = l.callsOf(call.files)
		}
		for _, name := range slices.Sorted(maps.Keys(call.files.Calls)) {
			if l.calls++; l.calls > maxModules {
				l.Add(diagnose.WithoutPlace("Too many modules", fmt.Sprintf("The configuration calls modules more than %d times, one through the other. Use for_each on one call instead.", maxModules)))
				return
			}
			next := &moduleCall{files: call.files.Calls[name], above: call}
			if rng, circular := l.circular(next, name); circular {
				l.ErrorAt(rng, "Module calls itself", fmt.Sprintf("The module %s is called by itself, so that there would be no end of it. Take the call out.", next.files.Shown))
				delete(call.files.Calls, name)
				continue
			}
			queue = append(queue, next)
		}
	}
}

func (l *moduleLoader) circular(call *moduleCall, name string) (hcl.Range, bool) {
	for above := call.above; above != nil; above = above.above {
		if above.files == call.files {
			return blockRange(call.above.files.Bodies, name), true
		}
	}
	return hcl.Range{}, false
}

func blockRange(bodies []*hclsyntax.Body, name string) hcl.Range {
	for _, b := range moduleBlocks(bodies) {
		if b.Labels[0] == name {
			return b.DefRange()
		}
	}
	return hcl.Range{}
}

// moduleBlocks are the module blocks that have a name; what is wrong with the
// others is reported when the blocks are checked.
func moduleBlocks(bodies []*hclsyntax.Body) []*hclsyntax.Block {
	var found []*hclsyntax.Block
	for _, body := range bodies {
		for _, b := range body.Blocks {
			if b.Type == "module" && len(b.Labels) == 1 {
				found = append(found, b)
			}
		}
	}
	return found
}

// callsOf reads the files of the modules that some files call.
func (l *moduleLoader) callsOf(from *Directory) map[string]*Directory {
	calls := map[string]*Directory{}
	for _, b := range moduleBlocks(from.Bodies) {
		source, ok := l.literal(b.Body.Attributes["source"])
		if !ok {
			continue
		}
		version, ok := l.literal(b.Body.Attributes["version"])
		if !ok && b.Body.Attributes["version"] != nil {
			continue
		}
		if files := l.called(from, b, source, version); files != nil && calls[b.Labels[0]] == nil {
			calls[b.Labels[0]] = files
		}
	}
	return calls
}

// literal is the string that an attribute has; it is read before there are values.
func (l *moduleLoader) literal(a *hclsyntax.Attribute) (string, bool) {
	if a == nil {
		return "", false
	}
	val, diags := a.Expr.Value(nil)
	if diags.HasErrors() || !as.IsPlainString(val) || val.AsString() == "" {
		l.ErrorAt(a.Expr.Range(), "Invalid value for "+a.Name, "Write a plain string: modules are read before there are values to refer to.")
		return "", false
	}
	return val.AsString(), true
}

// called is what a module block calls.
func (l *moduleLoader) called(from *Directory, b *hclsyntax.Block, source, version string) *Directory {
	rng := b.Body.Attributes["source"].Expr.Range()
	shown := filepath.Join(from.Shown, source)
	dir := filepath.Join(from.Dir, source)
	archive := from.Archive
	switch {
	case IsLocalModule(source) && version != "":
		l.ErrorAt(b.Body.Attributes["version"].SrcRange, "Version of a directory", "Only archives have versions: remove it, or name an archive as the source.")
		return nil
	case IsLocalModule(source) && archive != "" && (filepath.IsAbs(source) || !isBelow(archive, dir)):
		l.ErrorAt(rng, "Module leaves its archive", "A module in an archive finds only what is in the same archive with ./ and ../, since nothing else comes along. Name another archive as the source.")
		return nil
	case filepath.IsAbs(source):
		shown, dir = source, filepath.Clean(source)
	case !IsLocalModule(source) && l.installer == nil:
		l.ErrorAt(rng, "Module is not installed", "Modules from archives are got by `fray get`. A directory starts with ./ or ../.")
		return nil
	case !IsLocalModule(source):
		found, err := l.installer.Installed(l.source.dir, source, version)
		if err != nil {
			l.ErrorAt(rng, "Module is not installed", diagnose.Sentence(err.Error()))
			return nil
		}
		archive, dir, shown = found.Archive, found.Dir, found.Dir
		if rel, err := filepath.Rel(l.source.dir, dir); err == nil {
			shown = filepath.Join(l.source.Root.Shown, rel)
		}
	}
	files := l.directory(dir, shown, rng)
	if files != nil {
		files.Archive = archive
	}
	return files
}

// isBelow reports whether a directory is another one or below it.
func isBelow(top, dir string) bool {
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}

// IsLocalModule reports whether the source of a module is a directory.
func IsLocalModule(source string) bool {
	return source == "." || source == ".." || strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") || filepath.IsAbs(source)
}

// directory reads the files of a module.
func (l *moduleLoader) directory(dir, shown string, rng hcl.Range) *Directory {
	if files := l.read[dir]; files != nil {
		return files
	}
	found, of, diags := Discover(l.source.Disk, shown)
	if !diags.HasErrors() && of != dir {
		diags = hcl.Diagnostics{diagnose.WithoutPlace("Module is no directory", fmt.Sprintf("%s is a file: name the directory that it is in.", shown))}
	}
	for _, d := range diags {
		d.Subject = &rng
	}
	l.Extend(diags)
	if diags.HasErrors() {
		return nil
	}
	files := &Directory{Dir: dir, Shown: shown, Bodies: l.source.ParseFiles(l.Report, found)}
	l.read[dir] = files
	l.files = append(l.files, found...)
	return files
}
