// Package pause sets and clears the pause of a stack in its state, and describes
// it to people. That a paused loop observes and changes nothing is package lead's
// part.
package pause

import (
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/state"
)

// Set is doc with a pause; doc itself if it is paused already.
func Set(doc *state.Document, p state.Pause) *state.Document {
	if doc.Paused != nil {
		return doc
	}
	next := doc.Clone()
	next.Paused = &p
	return next
}

// Clear is doc without a pause.
func Clear(doc *state.Document) *state.Document {
	if doc.Paused == nil {
		return doc
	}
	next := doc.Clone()
	next.Paused = nil
	return next
}

// Text describes a pause: since when nothing is changed, by whom, why, and what to do.
func Text(p *state.Pause) string {
	text := fmt.Sprintf("%s paused the stack at %s", p.By, p.At.Local().Format(time.DateTime))
	if p.Reason != "" {
		text += " (" + strings.TrimSpace(p.Reason) + ")"
	}
	return text + "; fray resume lets it go on"
}
