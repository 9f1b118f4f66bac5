package plan

import (
	"fmt"
	"slices"
	"strings"
)

// bundlePath is the attribute that stands for the files of a project.
const bundlePath = "environment.bundle"

// FileVerb is what became of a file of a project.
type FileVerb string

// What becomes of files.
const (
	FileAdded   FileVerb = "added"
	FileChanged FileVerb = "changed"
	FileRemoved FileVerb = "removed"
)

// FileChange is a file that two versions of a project do not have in common.
type FileChange struct {
	Path string   `json:"path"` // below the project's directory, with slashes
	Verb FileVerb `json:"action"`
}

// maxNamedFiles is how many files a reason names.
const maxNamedFiles = 5

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
		a := &c.Attrs[i]
		if a.Path == bundlePath && a.Verb != VerbNone && len(a.Before) > 0 && len(a.After) > 0 {
			return a
		}
	}
	return nil
}

func unquoted(raw []byte) string { return strings.Trim(string(raw), `"`) }

// ExplainProjects names the files that changed in the projects of changed jobs, as far
// as they are known.
func (p *Plan) ExplainProjects(files map[BundleChange][]FileChange) {
	for i := range p.Changes {
		c := &p.Changes[i]
		a := c.bundle()
		if a == nil {
			continue
		}
		changed := files[BundleChange{unquoted(a.Before), unquoted(a.After)}]
		if len(changed) == 0 {
			continue
		}
		a.Files = changed
		c.Reason = joinReasons(c.Reason, projectChanged(changed))
	}
}

// joinReasons makes one reason of several.
func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}

// projectChanged says which files changed.
func projectChanged(files []FileChange) string {
	named := make([]string, 0, maxNamedFiles)
	for _, f := range files[:min(len(files), maxNamedFiles)] {
		named = append(named, f.Path+" "+string(f.Verb))
	}
	text := "project changed: " + strings.Join(named, ", ")
	if more := len(files) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
