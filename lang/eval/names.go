package eval

import (
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/language"
)

// Names completes what was begun of a reference or a function's name: each name
// up to its next dot, or with the bracket of a function.
func (sc *Scope) Names(prefix string) []string {
	var found []string
	for _, name := range sc.names() {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || rest == "" {
			continue
		}
		if dot := strings.IndexByte(rest, '.'); dot >= 0 {
			name = prefix + rest[:dot+1]
		}
		found = append(found, name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// names are all names that there are.
func (sc *Scope) names() []string {
	d := sc.Session.Root().Decls
	names := []string{"path.module", "path.root", "path.cwd", "fray.workspace"}
	add := func(root configs.Root, of []string) {
		for _, name := range of {
			names = append(names, string(root)+"."+name)
		}
	}
	add(configs.RootVar, d.VariableNames())
	add(configs.RootLocal, slices.Sorted(maps.Keys(d.Locals)))
	add(configs.RootOutput, slices.Sorted(maps.Keys(d.Outputs)))
	for name, decl := range d.Data {
		if decl.Check == "" {
			names = append(names, withAttributes("data."+name, decl.Repetition, configs.DataAttributes(language.DataKind(decl.Block.Type.Variant)))...)
		}
	}
	for name, call := range d.Calls {
		if child := sc.Session.Root().Module.Children[name]; child != nil {
			names = append(names, withAttributes("module."+name, call.Repetition, slices.Sorted(maps.Keys(child.Decls.Outputs)))...)
		}
	}
	for addr, decl := range d.Addressed {
		names = append(names, withAttributes(addr.String(), decl.Indexed(), decl.Attributes())...)
	}
	for name := range sc.Session.Base.Functions {
		names = append(names, name+"(")
	}
	return names
}

// withAttributes is a name with those of its attributes; of one of many, it is
// followed by an index.
func withAttributes(name string, repeated configs.Repetition, attributes []string) []string {
	names := []string{name}
	if repeated != configs.Single {
		return append(names, name+"[")
	}
	for _, attribute := range attributes {
		names = append(names, name+"."+attribute)
	}
	return names
}
