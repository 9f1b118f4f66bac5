package query

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/outline"
	"github.com/fray-ml/fray/lang/policyfile"
	"github.com/fray-ml/fray/lang/testfile"
)

// Query is a place in a file, with what it can refer to.
type Query struct {
	File   *outline.File
	Offset int
	Files  outline.Directory // the file and those beside it
	// Module returns the files of a module by its source, none of one that is not there.
	Module   func(source string) outline.Directory
	Language *lang.Language
}

// root is the root of the table for the file.
func (q *Query) root() *language.BlockType {
	switch name := q.File.Name; {
	case strings.HasSuffix(name, load.TestEnding):
		return testfile.Type()
	case strings.HasSuffix(name, load.PolicyEnding):
		return policyfile.Type()
	case strings.HasSuffix(name, load.PolicyTestEnding):
		return policyfile.CaseType()
	}
	return language.Root()
}

// part is the text of the part that has the offset, and where it begins.
func (q *Query) part() (text []byte, start int) {
	if len(q.File.Parts) == 0 {
		return nil, 0
	}
	p := q.File.Parts[q.File.PartAt(q.Offset)]
	return p.Text, p.Byte
}

// sites are the declarations whose symbol begins with a root, in the order of their names.
func (q *Query) sites(files outline.Directory, root string) []outline.Site {
	var found []outline.Site
	for site := range files.Sites {
		if strings.HasPrefix(string(site.Symbol), root+".") {
			found = append(found, site)
		}
	}
	slices.SortStableFunc(found, func(a, b outline.Site) int { return strings.Compare(string(a.Symbol), string(b.Symbol)) })
	return found
}

// module are the files that a module block of a name calls.
func (q *Query) module(name string) outline.Directory {
	site, ok := q.Files.Find(outline.Of(string(configs.RootModule), name))
	if !ok || site.Source == "" || q.Module == nil {
		return outline.Directory{}
	}
	return q.Module(site.Source)
}

// function is the documentation of a function.
func (q *Query) function(name string) (funcs.Doc, bool) {
	i := slices.IndexFunc(q.Language.Functions, func(f funcs.Doc) bool { return f.Name == name })
	if i < 0 {
		return funcs.Doc{}, false
	}
	return q.Language.Functions[i], true
}

// reference is what the language has of a root.
func (q *Query) reference(root string) (lang.RootDescription, bool) {
	if root == policyfile.PlanRoot && strings.HasSuffix(q.File.Name, load.PolicyEnding) {
		return lang.RootDescription{Root: root, Form: "plan.PART", Doc: "the plan that the policy is held against", Attributes: policyfile.PlanParts()}, true
	}
	i := slices.IndexFunc(q.Language.References, func(r lang.RootDescription) bool { return r.Root == root })
	if i < 0 {
		return lang.RootDescription{}, false
	}
	return q.Language.References[i], true
}
