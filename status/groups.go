package status

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// grouping is how the jobs on the screen are grouped, and which of the groups were opened.
type grouping struct {
	by     Field  // "": as the selection asks, or as many jobs need
	opened []Term // the values of the opened groups: only what is in all of them is shown
}

// fieldsOf are the fields that the groups of a screen have, none for few jobs.
func (v *View) fieldsOf(jobs int) []Field {
	switch {
	case len(v.Select.By) > 0:
		return v.Select.By
	case v.Select.Limit > 0 && jobs > v.Select.Limit:
		return []Field{FieldNamespace}
	}
	return nil
}

// groupPane has a row for each group. Enter shows what is in it.
func (v *View) groupPane(jobs int) pane {
	by := v.fieldsOf(jobs)
	p := pane{name: "Groups"}
	for _, f := range by {
		p.columns = append(p.columns, column{strings.ToUpper(string(f)), 40})
	}
	for i, name := range groupColumns {
		p.columns = append(p.columns, column{name, 12})
		if i == len(groupColumns)-1 {
			p.columns[len(p.columns)-1].width = 0
		}
	}
	if len(by) == 0 {
		return p
	}
	for _, g := range v.groups(by) {
		m := moodPlain
		if g.States[schema.JobFailed] > 0 {
			m = moodBad
		}
		p.rows = append(p.rows, row{mood: m, group: g.terms(by), cells: func() []string { return append(g.names(), g.cells()...) }})
	}
	return p
}

// terms are the conditions of what is in a group.
func (g *Group) terms(by []Field) []Term {
	terms := make([]Term, len(by))
	for i, f := range by {
		terms[i] = Term{Field: f, how: isOneOf, wants: []string{g.Values[i]}}
	}
	return terms
}

// show takes in an observation of the whole stack, of which the opened groups are shown.
func (s *fullScreen) show(b *board) {
	grouped := s.groups.by != "" || len(s.groups.opened) > 0
	if !grouped && b.view == b.whole {
		s.board = b
		return
	}
	v := b.whole
	by := v.Select.By
	if s.groups.by != "" {
		by = []Field{s.groups.by}
	}
	s.board = newBoard(v.narrowed(s.groups.opened, by))
	s.board.whole = v
}

// openGroup shows only what is in a group, and the jobs of it.
func (s *fullScreen) openGroup(terms []Term) {
	s.groups.opened = append(slices.Clip(s.groups.opened), terms...)
	s.show(s.board)
	s.focus = paneJobs
	s.search()
}

// regroup groups by the next field.
func (s *fullScreen) regroup() {
	if s.board == nil {
		return
	}
	all := GroupFields()
	s.groups.by = all[(slices.Index(all, s.groups.by)+1)%len(all)]
	s.show(s.board)
	s.focus = paneGroups
	s.search()
}

// closeGroups shows the whole stack again.
func (s *fullScreen) closeGroups() {
	if len(s.groups.opened) == 0 || s.board == nil {
		return
	}
	s.groups.opened = nil
	s.show(s.board)
}

// names are the opened groups, for people.
func (g *grouping) names() string {
	var parts []string
	for _, t := range g.opened {
		parts = append(parts, string(t.Field)+"="+cmp.Or(clean(t.wants[0]), "-"))
	}
	return strings.Join(parts, ", ")
}
