package review

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/forge"
)

// Action is a closed set of what is done with the comment of a target.
type Action string

// The actions.
const (
	Create Action = "create"
	Edit   Action = "edit"
	Leave  Action = "leave"
)

// Because is a closed set of reasons to leave a comment as it is.
type Because string

// The reasons.
const (
	BecauseSame       Because = "it has this text already"
	BecauseSuperseded Because = "the pull request has a newer commit, whose run comments"
	BecauseNewerRun   Because = "a newer run has commented"
	BecauseNothing    Because = "there is nothing to do, and no comment to edit"
)

// Choice is what is done with the comments of a target.
type Choice struct {
	Action Action
	ID     int64   // of the comment to edit, or that is left; 0: there is none
	Remove []int64 // further comments of the target, by runs that began at the same time
	// Because is why nothing is written, with Leave.
	Because Because
}

// Wanted is what a run has to comment.
type Wanted struct {
	Marker Marker
	Body   string
	Author string // with whose login it writes: comments of others are not its own, whatever they contain
	// Head is the commit that the pull request has now; "": it is not known.
	Head string
	// Adds says that a comment is added where there is none.
	Adds bool
}

// Choose decides what becomes of the comments that a pull request has. Of one commit a
// later run counts more than an earlier one. A run on a commit that is not the head any
// more writes nothing.
func Choose(found []forge.Comment, w Wanted) Choice {
	own := ownComments(found, w)
	choice := Choice{Action: Leave}
	if len(own) > 0 {
		choice.ID = own[0].ID
	}
	switch {
	case w.Head != "" && w.Marker.Commit != "" && w.Head != w.Marker.Commit:
		choice.Because = BecauseSuperseded
		return choice
	case slices.ContainsFunc(own, func(c forge.Comment) bool { return overrides(c, w) }):
		choice.Because, choice.Remove = BecauseNewerRun, written(own[1:], w.Marker)
		return choice
	case len(own) == 0 && !w.Adds:
		choice.Because = BecauseNothing
		return choice
	case len(own) == 0:
		choice.Action = Create
		return choice
	}
	for _, c := range own[1:] {
		choice.Remove = append(choice.Remove, c.ID)
	}
	if own[0].Body == w.Body {
		choice.Because = BecauseSame
		return choice
	}
	choice.Action = Edit
	return choice
}

// ownComments are the comments of the target, the oldest first: that one stays.
func ownComments(found []forge.Comment, w Wanted) []forge.Comment {
	var own []forge.Comment
	for _, c := range found {
		if m, ok := ParseMarker(c.Body); ok && c.Author == w.Author && m.about(w.Marker) {
			own = append(own, c)
		}
	}
	slices.SortFunc(own, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	return own
}

// overrides reports whether a comment is by a later run. Where the head is known, only runs on
// that head count: a run on another commit is out of date whenever it ran.
func overrides(c forge.Comment, w Wanted) bool {
	m, _ := ParseMarker(c.Body)
	return m.after(w.Marker) && (w.Head == "" || m.Commit == w.Marker.Commit)
}

// written are the comments that a run wrote itself. The oldest one is not among them where a
// newer run is to write into it.
func written(own []forge.Comment, mine Marker) []int64 {
	var ids []int64
	for _, c := range own {
		if m, _ := ParseMarker(c.Body); m.Run == mine.Run && m.Attempt == mine.Attempt {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Find is the marker of the target's own comment, and whether there is one.
func Find(found []forge.Comment, author string, kind Kind, target Target) (Marker, bool) {
	own := ownComments(found, Wanted{Marker: Marker{Kind: kind, Target: target}, Author: author})
	if len(own) == 0 {
		return Marker{}, false
	}
	return ParseMarker(own[0].Body)
}
