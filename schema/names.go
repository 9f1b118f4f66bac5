package schema

import (
	"slices"
	"strings"
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
	d := sc.session.root().decls
	names := []string{"path.module", "path.root", "path.cwd", "fray.workspace"}
	add := func(root rootName, of []string) {
		for _, name := range of {
			names = append(names, string(root)+"."+name)
		}
	}
	add(rootVar, d.variableNames())
	add(rootLocal, sortedKeys(d.locals))
	add(rootOutput, sortedKeys(d.outputs))
	for name, decl := range d.data {
		if decl.check == "" {
			names = append(names, withAttributes("data."+name, decl.repetition, dataAttributes(DataKind(decl.block.typ.variant)))...)
		}
	}
	for name, call := range d.calls {
		if child := sc.session.root().mod.children[name]; child != nil {
			names = append(names, withAttributes("module."+name, call.repetition, sortedKeys(child.decls.outputs))...)
		}
	}
	for addr, decl := range d.things {
		names = append(names, withAttributes(addr.String(), decl.indexed(), decl.attributes())...)
	}
	for name := range sc.session.base.Functions {
		names = append(names, name+"(")
	}
	return names
}

// withAttributes is a name with those of its attributes; of one of many, it is
// followed by an index.
func withAttributes(name string, repeated repetition, attributes []string) []string {
	names := []string{name}
	if repeated != single {
		return append(names, name+"[")
	}
	for _, attribute := range attributes {
		names = append(names, name+"."+attribute)
	}
	return names
}
