package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/state"
)

// BundlePath is the attribute that stands for the files of a project.
const BundlePath = "environment.bundle"

// FileChange is a file that two versions of a project do not have in common.
type FileChange = state.FileChange

// BundleChange is a project whose files a plan changes.
type BundleChange struct {
	Before, After string // digests as the plan has them: their beginnings
}

// BundleChanges are the projects of which a plan changes the files.
func (p *Plan) BundleChanges() []BundleChange {
	var all []BundleChange
	seen := map[BundleChange]bool{}
	for i := range p.Changes {
		if a := p.Changes[i].bundle(); a != nil {
			c := BundleChange{unquoted(a.Before), unquoted(a.After)}
			if !seen[c] {
				all, seen[c] = append(all, c), true
			}
		}
	}
	return all
}

// bundle is the attribute of a change by which the files of its project change.
func (c *Change) bundle() *AttrChange {
	for i := range c.Attrs {
		a := c.Attrs[i]
		if a.Path == BundlePath && a.Verb != VerbNone && len(a.Before) > 0 && len(a.After) > 0 {
			return a
		}
	}
	return nil
}

func unquoted(raw []byte) string { return strings.Trim(string(raw), `"`) }

// ExplainProjects names all files that changed in the projects of changed jobs, as far
// as they are known; the reasons of the changes name the first ones already.
func (p *Plan) ExplainProjects(files map[BundleChange][]FileChange) {
	for i := range p.Changes {
		a := p.Changes[i].bundle()
		if a == nil {
			continue
		}
		if changed := files[BundleChange{unquoted(a.Before), unquoted(a.After)}]; len(changed) > 0 {
			a.Files = changed
		}
	}
}

// JoinReasons makes one reason of several.
func JoinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// ProjectChanged says which files changed, and how many more did.
func ProjectChanged(files []FileChange, more int) string {
	if len(files) == 0 {
		return ""
	}
	named := make([]string, 0, len(files))
	for _, f := range files {
		named = append(named, f.Path+" "+string(f.Verb))
	}
	text := "project changed: " + strings.Join(named, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
