package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/state"
)

// Explain names the causes of a change with its attributes and in its reason.
func (c *Change) Explain(causes *state.ChangeCauses) {
	if causes.IsZero() {
		return
	}
	var paths []string
	for i := range c.Attrs {
		a := c.Attrs[i]
		if a.Verb == VerbNone {
			continue
		}
		if a.Variables = causes.Variables[a.Path]; len(a.Variables) > 0 || a.Path == BundlePath {
			paths = append(paths, a.Path)
		}
		if a.Path == BundlePath {
			a.Files = causes.Files
		}
	}
	known := CausesOf(paths, causes)
	if known != nil {
		c.Reason = JoinReasons(c.Reason, VariablesChanged(known), ProjectChanged(known.Files, known.MoreFiles), CommitsMerged(known))
	}
}

// CausesOf are those of some attributes, nil if there are none.
func CausesOf(paths []string, causes *state.ChangeCauses) *state.ChangeCauses {
	if causes.IsZero() {
		return nil
	}
	c := state.ChangeCauses{Commits: causes.Commits, MoreCommits: causes.MoreCommits}
	for _, path := range paths {
		if names := causes.Variables[path]; len(names) > 0 {
			if c.Variables == nil {
				c.Variables = map[string][]string{}
			}
			c.Variables[path] = names
		}
		if path == BundlePath {
			c.Files, c.MoreFiles = causes.Files, causes.MoreFiles
		}
	}
	if c.IsZero() {
		return nil
	}
	return &c
}

// CommitsMerged names the newest commit, "" if there are none.
func CommitsMerged(c *state.ChangeCauses) string {
	if c == nil || len(c.Commits) == 0 {
		return ""
	}
	text := c.Commits[0].String()
	if more := len(c.Commits) - 1 + c.MoreCommits; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// VariablesChanged names variables, "" if there are none.
func VariablesChanged(c *state.ChangeCauses) string {
	var names []string
	for _, some := range c.Variables {
		names = append(names, some...)
	}
	slices.Sort(names)
	switch names = slices.Compact(names); len(names) {
	case 0:
		return ""
	case 1:
		return "variable " + names[0] + " changed"
	}
	return "variables " + strings.Join(names, ", ") + " changed"
}
