package plan

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Sources find out why attributes changed.
type Sources struct {
	// Variables are those that an attribute reads and whose values changed; nil: none are.
	Variables func(addr schema.Address, path string) []string
	// Files are those in which two projects differ, by their digests; nil: none are known.
	Files func(before, after string) []FileChange
}

// Causes are why what a document desires differs from what was carried out. What is
// known already stays known: what it is of has not been carried out yet.
func Causes(doc *state.Document, from Sources) map[schema.Address]state.ChangeCauses {
	found := map[schema.Address]state.ChangeCauses{}
	add := func(addr schema.Address, attrs []AttrChange, known *state.ChangeCauses) {
		if c := from.causes(addr, attrs, known); !c.IsZero() {
			found[addr] = c
		}
	}
	for i := range doc.Desired.Jobs {
		want := &doc.Desired.Jobs[i]
		cur := doc.Jobs[want.Addr]
		if cur == nil || sameSpec(want, cur) {
			continue
		}
		add(want.Addr, changedAttrs(jobAttrs(cur.Spec), jobAttrs(want)), cur.Causes)
		before, after := cur.Spec.Environment.Bundle, want.Environment.Bundle
		if from.Files == nil || before == "" || after == "" || before == after {
			continue
		}
		if files := from.Files(before, after); len(files) > 0 {
			c := found[want.Addr]
			c.Files = files[:min(len(files), maxNamedFiles)]
			c.MoreFiles = len(files) - len(c.Files)
			found[want.Addr] = c
		}
	}
	resource := func(addr schema.Address, want state.Resource) {
		if cur, exists := doc.Resources[addr]; exists && !sameResource(cur, want) {
			add(addr, changedAttrs(resourceAttrs(cur), resourceAttrs(want)), cur.Causes)
		}
	}
	for i := range doc.Desired.Namespaces {
		resource(doc.Desired.Namespaces[i].Addr, state.Resource{Namespace: &doc.Desired.Namespaces[i]})
	}
	for i := range doc.Desired.Reservations {
		resource(doc.Desired.Reservations[i].Addr, state.Resource{Reservation: &doc.Desired.Reservations[i]})
	}
	for i := range doc.Desired.Groups {
		resource(doc.Desired.Groups[i].Addr, state.Resource{Group: &doc.Desired.Groups[i]})
	}
	return found
}

func (from Sources) causes(addr schema.Address, attrs []AttrChange, known *state.ChangeCauses) state.ChangeCauses {
	var c state.ChangeCauses
	for i := range attrs {
		a := &attrs[i]
		if a.Verb == VerbNone {
			continue
		}
		var names []string
		if from.Variables != nil {
			names = slices.Clone(from.Variables(addr, a.Path))
		}
		if known != nil {
			names = append(names, known.Variables[a.Path]...)
		}
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		if c.Variables == nil {
			c.Variables = map[string][]string{}
		}
		c.Variables[a.Path] = slices.Compact(names)
	}
	return c
}

// Explain puts causes into a document of which the maps may be changed, in place of
// those that it has.
func Explain(doc *state.Document, causes map[schema.Address]state.ChangeCauses) {
	of := func(addr schema.Address) *state.ChangeCauses {
		if c, ok := causes[addr]; ok {
			return &c
		}
		return nil
	}
	for addr, j := range doc.Jobs {
		c := of(addr)
		if c == nil && j.Causes == nil {
			continue
		}
		explained := *j
		explained.Causes = c
		doc.Jobs[addr] = &explained
	}
	for addr, r := range doc.Resources {
		r.Causes = of(addr)
		doc.Resources[addr] = r
	}
}

// explain names the causes of a change with its attributes and in its reason.
func (c *Change) explain(causes *state.ChangeCauses) {
	if causes.IsZero() {
		return
	}
	var paths []string
	for i := range c.Attrs {
		a := &c.Attrs[i]
		if a.Verb == VerbNone {
			continue
		}
		if a.Variables = causes.Variables[a.Path]; len(a.Variables) > 0 || a.Path == bundlePath {
			paths = append(paths, a.Path)
		}
		if a.Path == bundlePath {
			a.Files = causes.Files
		}
	}
	known := causesOf(paths, causes)
	if known != nil {
		c.Reason = joinReasons(c.Reason, variablesChanged(known), projectChanged(known.Files, known.MoreFiles))
	}
}

// causesOf are those of some attributes, nil if there are none.
func causesOf(paths []string, causes *state.ChangeCauses) *state.ChangeCauses {
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
		if path == bundlePath {
			c.Files, c.MoreFiles = causes.Files, causes.MoreFiles
		}
	}
	if c.IsZero() {
		return nil
	}
	return &c
}

// variablesChanged names variables, "" if there are none.
func variablesChanged(c *state.ChangeCauses) string {
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

// maxChanged is how many changed attributes are named in a reason.
const maxChanged = 3

// changedText says why something changed: by which variables, which files of its
// project, and which attributes else.
func changedText(paths []string, causes *state.ChangeCauses) string {
	if causes == nil {
		return attributesChanged(paths)
	}
	var others []string
	for _, path := range paths {
		if len(causes.Variables[path]) == 0 && (path != bundlePath || len(causes.Files) == 0) {
			others = append(others, path)
		}
	}
	return joinReasons(variablesChanged(causes), projectChanged(causes.Files, causes.MoreFiles), attributesChanged(others))
}

// attributesChanged names attributes, "" if there are none.
func attributesChanged(paths []string) string {
	switch n := len(paths); {
	case n == 0:
		return ""
	case n > maxChanged:
		return strings.Join(paths[:maxChanged], ", ") + more(n-maxChanged) + " changed"
	}
	return strings.Join(paths, ", ") + " changed"
}

// replaced is why an attempt ends for whose job new slices are made.
func replaced(j *state.Job) state.Termination {
	why := decided(state.CauseReplaced)
	if c := j.Causes; !c.IsZero() {
		why.Text += ": " + joinReasons(variablesChanged(c), projectChanged(c.Files, c.MoreFiles))
	}
	return why
}
