package follow

import (
	"fmt"

	"github.com/fray-ml/fray/state"
)

// waitOf is why the first of the jobs that wait does, in brackets.
func waitOf(doc *state.Document, streams []*logStream) string {
	for _, s := range streams {
		if j := doc.Jobs[s.job]; j != nil && j.Reason != "" {
			return fmt.Sprintf(" (%s: %s)", s.job, j.Reason)
		}
	}
	return ""
}

// silence reports why nothing was printed, "" where it was not to be expected that
// something is.
func (q *Query) silence(doc *state.Document, streams []*logStream) string {
	if q.Tail == 0 || len(streams) == 0 {
		return ""
	}
	started, running := false, false
	for _, s := range streams {
		started = started || s.place.Started
		running = running || s.running
	}
	switch {
	case q.Since > 0:
		return fmt.Sprintf("%s has printed nothing in the last %s", q.name(), q.Since)
	case !running:
		return fmt.Sprintf("%s has printed nothing, and has ended", q.name())
	case !started:
		return fmt.Sprintf("no task of %s has started yet%s; see %s; fray logs -f waits for it", q.name(), waitOf(doc, streams), q.status())
	}
	return fmt.Sprintf("%s runs and has printed nothing yet; output arrives here within a second or two, and fray logs -f waits for it", q.name())
}
