package funcs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
)

// Docs describes what expressions may call, by group and name.
func Docs() []Doc {
	var docs []Doc
	for _, f := range library(files.Folder{}, &clock{}) {
		docs = append(docs, f.doc())
	}
	return docs
}

// InDirectory returns what expressions may call, under the names that Terraform
// gives them. Paths are relative to dir. None reads the clock, a random source or the
// network: equal files give equal plans.
func InDirectory(dir string) map[string]function.Function {
	return In(files.NewFolder(files.Disk{}, dir), Moment{})
}

// In is what expressions may call whose paths are relative to a folder, in a plan of
// some moment: what is known only once it is applied is not known.
func In(f files.Folder, m Moment) map[string]function.Function {
	return functionsOf(f, &clock{Moment: Moment{Planned: m.Planned}})
}

func functionsOf(f files.Folder, c *clock) map[string]function.Function {
	fns := map[string]function.Function{}
	for _, each := range library(f, c) {
		fns[each.name] = each.guarded()
	}
	return fns
}

// leftOutFunctions are those of Terraform that fray has not, and why.
func leftOutFunctions() map[string]string {
	return map[string]string{
		"list": "gone from Terraform too; write [\"a\", \"b\"], or tolist([\"a\", \"b\"])",
		"map":  "gone from Terraform too; write { a = 1 }, or tomap({ a = 1 })",
		"type": "it is of Terraform's console only",
	}
}

// Advice is what to write instead of a function that does not exist.
func Advice(name string) string {
	if why, ok := leftOutFunctions()[name]; ok {
		return fmt.Sprintf("Terraform's %s is left out: %s.", name, why)
	}
	if strings.Contains(name, "::") {
		return "Providers bring no functions, and those of the language have no prefix."
	}
	names := []string{}
	for _, f := range library(files.Folder{}, &clock{}) {
		names = append(names, f.name)
	}
	return diagnose.DidYouMean(name, names)
}

// library returns all functions by group and name.
func library(in files.Folder, c *clock) []libraryFunction {
	groups := map[Group][]libraryFunction{
		Numbers:     numberFunctions(),
		Strings:     stringFunctions(),
		Collections: slices.Concat(sequenceFunctions(), mapFunctions(), setFunctions()),
		Encodings:   encodingFunctions(),
		Hashes:      hashFunctions(),
		Files:       fileFunctions(in),
		Networks:    networkFunctions(),
		Times:       timeFunctions(),
		Types:       slices.Concat(conversionFunctions(), markFunctions(), attemptFunctions()),
		TPUs:        tpuFunctions(),
	}
	for _, f := range momentFunctions(c) {
		groups[f.group] = append(groups[f.group], f)
	}
	templates := map[string]function.Function{}
	var all []libraryFunction
	for _, group := range Groups() {
		for _, f := range groups[group] {
			f.group = group
			all = append(all, f)
			templates[f.name] = f.guarded()
		}
	}
	all = append(all, templateFunctions(in, templates)...)
	slices.SortStableFunc(all, func(a, b libraryFunction) int {
		order := Groups()
		if d := slices.Index(order, a.group) - slices.Index(order, b.group); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}
