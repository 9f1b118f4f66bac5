package plan

import (
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
		a := &c.Attrs[i]
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
		c.Reason = JoinReasons(c.Reason, VariablesChanged(known), ProjectChanged(known.Files, known.MoreFiles))
	}
}

// CausesOf are those of some attributes, nil if there are none.
func CausesOf(paths []string, causes *state.ChangeCauses) *state.ChangeCauses {
	if causes.IsZero() {
		return nil
	}
	var c state.ChangeCauses
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
