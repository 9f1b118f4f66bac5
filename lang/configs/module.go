package configs

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// Module is one call of a directory's files, or the root: what can be known of
// it without values. Its instances are evaluators, see session.
type Module struct {
	*diagnose.Report
	Path     string // "module.a.module.b", without keys; "" for the root
	Name     string
	parent   *Module // nil for the root
	Files    *load.Directory
	Decls    *Declarations
	Children map[string]*Module
}

// Modules builds the tree of modules, parents before children.
func Modules(files *load.Directory, r *diagnose.Report) []*Module {
	root := &Module{Report: r, Files: files}
	all := []*Module{root}
	for i := 0; i < len(all); i++ {
		m := all[i]
		typ := language.Root()
		check := Checker{r}
		m.Decls = check.declare(check.Structure(m.Files.Bodies, typ, nil))
		m.Children = map[string]*Module{}
		if m.parent != nil {
			m.onlyOfRoot()
		}
		for _, name := range slices.Sorted(maps.Keys(m.Decls.Calls)) {
			called := m.Files.Calls[name]
			if called == nil {
				continue // could not be read, and is reported
			}
			child := &Module{Report: r, Path: schema.JoinModule(m.Path, name, schema.Key{}), Name: name, parent: m, Files: called}
			m.Children[name] = child
			all = append(all, child)
		}
	}
	return all
}

// Call is the block that calls the module, in its parent.
func (m *Module) Call() *Block { return m.parent.Decls.Calls[m.Name].Block }

// onlyOfRoot reports what stands in a module and holds for the whole.
func (m *Module) onlyOfRoot() {
	const summary = "Not in a module"
	if b := m.Decls.Fray; b != nil {
		for _, children := range b.Blocks {
			m.ErrorAt(children[0].Range(), summary, "Only the configuration that uses the module declares where the state is and who may read it: of fray { }, a module has required_version only.")
		}
	}
	if b := m.Decls.Controller; b != nil {
		m.ErrorAt(b.Range(), summary, "The controller is declared once, by the configuration that uses the module.")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Decls.Providers)) {
		m.ErrorAt(m.Decls.Providers[name].Range(), summary, "Providers are declared by the configuration that uses the module, which hands them in: all of them, or those of providers = { … }.")
	}
	for _, imported := range m.Decls.Imports {
		m.ErrorAt(imported.Range(), summary, "Only the configuration that uses the module may import: import { to = module.NAME.… }.")
	}
}
