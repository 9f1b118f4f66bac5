package status

import (
	"cmp"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/status/selection"
)

// fieldsOf are the fields that the groups of a screen have, none for few jobs.
func fieldsOf(v *View, jobs int) []selection.Field {
	switch {
	case len(v.Select.By) > 0:
		return v.Select.By
	case v.Select.Limit > 0 && jobs > v.Select.Limit:
		return []selection.Field{selection.FieldNamespace}
	}
	return nil
}

// groupPane has a row for each group. Enter shows what is in it.
func groupPane(v *View, jobs int) pane {
	by := fieldsOf(v, jobs)
	p := pane{name: "Groups"}
	for _, f := range by {
		p.columns = append(p.columns, column{strings.ToUpper(string(f)), 40})
	}
	names := selection.Columns()
	for i, name := range names {
		p.columns = append(p.columns, column{name, 12})
		if i == len(names)-1 {
			p.columns[len(p.columns)-1].width = 0
		}
	}
	if len(by) == 0 {
		return p
	}
	for _, g := range groupsOf(v, by) {
		m := moodPlain
		if g.States[schema.JobFailed] > 0 {
			m = moodBad
		}
		p.rows = append(p.rows, row{mood: m, group: g.Terms(by), cells: func() []string { return append(namesOf(g), g.Cells()...) }})
	}
	return p
}

// namesOf are a group's values for people.
func namesOf(g *selection.Group) []string {
	out := make([]string, len(g.Values))
	for i, value := range g.Values {
		out[i] = cmp.Or(clean(value), "-")
	}
	return out
}
