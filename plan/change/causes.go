package change

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Sources find out why attributes changed.
type Sources struct {
	// Variables are those that an attribute reads and whose values changed; nil: none are.
	Variables func(addr schema.Address, path string) []string
	// Files are those in which two projects differ, by their digests; nil: none are known.
	Files func(before, after string) []plan.FileChange
}

// Causes are why what a document desires differs from what was carried out. What is
// known already stays known: what it is of has not been carried out yet.
func Causes(doc *state.Document, from Sources) map[schema.Address]state.ChangeCauses {
	found := map[schema.Address]state.ChangeCauses{}
	add := func(addr schema.Address, attrs []*plan.AttrChange, known *state.ChangeCauses) {
		if c := from.causes(addr, attrs, known); !c.IsZero() {
			found[addr] = c
		}
	}
	for i := range doc.Desired.Jobs {
		want := &doc.Desired.Jobs[i]
		cur := doc.Jobs[want.Addr]
		if cur == nil || SameSpec(want, cur) {
			continue
		}
		add(want.Addr, ChangedAttrs(JobAttrs(cur.Spec), JobAttrs(want)), cur.Causes)
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
		if cur, exists := doc.Resources[addr]; exists && !plan.SameResource(cur, want) {
			add(addr, ChangedAttrs(ResourceAttrs(cur), ResourceAttrs(want)), cur.Causes)
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
	for i := range doc.Desired.Notifications {
		resource(doc.Desired.Notifications[i].Addr, state.Resource{Notification: &doc.Desired.Notifications[i]})
	}
	return found
}

func (from Sources) causes(addr schema.Address, attrs []*plan.AttrChange, known *state.ChangeCauses) state.ChangeCauses {
	var c state.ChangeCauses
	for i := range attrs {
		a := attrs[i]
		if a.Verb == plan.VerbNone {
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

// maxChanged is how many changed attributes are named in a reason.
const maxChanged = 3

// ChangedText says why something changed: by which variables, which files of its
// project, and which attributes else.
func ChangedText(paths []string, causes *state.ChangeCauses) string {
	if causes == nil {
		return attributesChanged(paths)
	}
	var others []string
	for _, path := range paths {
		if len(causes.Variables[path]) == 0 && (path != plan.BundlePath || len(causes.Files) == 0) {
			others = append(others, path)
		}
	}
	return plan.JoinReasons(plan.VariablesChanged(causes), plan.ProjectChanged(causes.Files, causes.MoreFiles), attributesChanged(others), plan.CommitsMerged(causes))
}

// attributesChanged names attributes, "" if there are none.
func attributesChanged(paths []string) string {
	switch n := len(paths); {
	case n == 0:
		return ""
	case n > maxChanged:
		return strings.Join(paths[:maxChanged], ", ") + More(n-maxChanged) + " changed"
	}
	return strings.Join(paths, ", ") + " changed"
}

// Replaced is why an attempt ends for whose job new slices are made.
func Replaced(j *state.Job) state.Termination {
	why := Decided(state.CauseReplaced)
	if c := j.Causes; !c.IsZero() {
		why.Text += ": " + plan.JoinReasons(plan.VariablesChanged(c), plan.ProjectChanged(c.Files, c.MoreFiles), plan.CommitsMerged(c))
	}
	return why
}
