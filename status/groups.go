package status

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fray-ml/fray/status/selection"
)

// grouping is how the jobs on the screen are grouped, and which of the groups were opened.
type grouping struct {
	by     selection.Field  // "": as the selection asks, or as many jobs need
	opened []selection.Term // the values of the opened groups: only what is in all of them is shown
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
		by = []selection.Field{s.groups.by}
	}
	s.board = newBoard(narrowed(v, s.groups.opened, by))
	s.board.whole = v
}

// openGroup shows only what is in a group, and the jobs of it.
func (s *fullScreen) openGroup(terms []selection.Term) {
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
	all := selection.GroupFields()
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
		parts = append(parts, string(t.Field)+"="+cmp.Or(clean(t.Value()), "-"))
	}
	return strings.Join(parts, ", ")
}
