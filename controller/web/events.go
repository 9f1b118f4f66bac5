package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/state"
)

// Level is how much an event matters, of a closed set.
type Level string

// The levels.
const (
	LevelInfo  Level = "info"
	LevelGood  Level = "good"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Event is something that happened to the stack.
type Event struct {
	Seq   uint64    `json:"seq"` // rises by one
	At    time.Time `json:"at"`  // it was seen
	Level Level     `json:"level"`
	About string    `json:"about"`            // an address, a slice, a place
	Job   string    `json:"job_id,omitempty"` // of one about a job
	Slice bool      `json:"slice,omitempty"`  // About is the name of a slice
	Text  string    `json:"text"`
}

// EventList is the answer of /api/v1/events.
type EventList struct {
	Version uint64  `json:"version"`
	Total   int     `json:"total"`
	Events  []Event `json:"events"` // newest first, at most as many as asked for
}

// keptEvents is how many events are remembered.
const keptEvents = 2000

// journal are the last events: what the store remembers, then what was seen.
type journal struct {
	mu     sync.Mutex
	seq    uint64
	events []Event // oldest first
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	job, words := r.URL.Query().Get("job"), strings.Fields(strings.ToLower(r.URL.Query().Get("q")))
	s.journal.mu.Lock()
	kept := slices.Clone(s.journal.events)
	s.journal.mu.Unlock()
	slices.Reverse(kept)
	limit := keptEvents
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && n > 0 {
		limit = n
	}
	out := EventList{Version: s.current.Load().version, Events: []Event{}}
	for _, e := range kept {
		text := strings.ToLower(string(e.Level) + " " + e.About + " " + e.Text)
		if job != "" && e.Job != job || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		if out.Total++; out.Total <= limit {
			out.Events = append(out.Events, e)
		}
	}
	answer(w, http.StatusOK, out)
}

// note adds what differs between two snapshots. What there is at the beginning
// is no event.
func (j *journal) note(before, after *Snapshot) {
	if before.Doc.Lineage == "" || before.Doc == after.Doc && before.Lease.Epoch == after.Lease.Epoch {
		return
	}
	c := changes{before: before.Doc, after: after.Doc, at: after.At}
	if before.Lease.Epoch != after.Lease.Epoch {
		c.add(LevelInfo, "controller", fmt.Sprintf("%s leads with epoch %d", cmp.Or(leaderOf(after), "another controller"), after.Lease.Epoch))
	}
	c.pause()
	for _, e := range change.Events(before.Doc, &plan.Plan{Next: after.Doc}, after.At) {
		c.found = append(c.found, eventOf(e, after.Doc))
	}
	c.zoneHealth()
	j.add(c.found)
}

// remember puts in what the store knows of the time before.
func (j *journal) remember(past []state.Event, doc *state.Document) {
	found := make([]Event, len(past))
	for i := range past {
		found[i] = eventOf(past[i], doc)
	}
	j.add(found)
}

func (j *journal) add(found []Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range found {
		j.seq++
		e.Seq = j.seq
		j.events = append(j.events, e)
	}
	if extra := len(j.events) - keptEvents; extra > 0 {
		j.events = slices.Delete(j.events, 0, extra)
	}
}

// eventOf is an event as a page shows it.
func eventOf(e state.Event, doc *state.Document) Event {
	out := Event{At: e.At, Level: levelOf(e), Text: e.Text, About: e.Addr.String()}
	if j := doc.Jobs[e.Addr]; j != nil {
		out.Job = j.ID
	}
	if e.Slice != "" {
		out.About, out.Slice = e.Slice, true
	}
	if out.About == "" {
		out.About = "controller"
	}
	return out
}

// levelOf is the level of an event, by its kind where an older fray recorded none.
func levelOf(e state.Event) Level {
	switch e.Level {
	case state.EventGood:
		return LevelGood
	case state.EventWarn:
		return LevelWarn
	case state.EventError:
		return LevelError
	case state.EventInfo:
	}
	switch e.Kind {
	case state.EventReady:
		return LevelGood
	case state.EventDrift, state.EventProvider, state.EventBudget:
		return LevelWarn
	case state.EventLaunched, state.EventStarted, state.EventEnded, state.EventJob, state.EventSlice, state.EventPending,
		state.EventLease, state.EventConfig, state.EventNotice:
	}
	return LevelInfo
}

// changes are told between two documents.
type changes struct {
	before, after *state.Document
	at            time.Time
	found         []Event
}

func (c *changes) add(level Level, about, text string) {
	c.found = append(c.found, Event{At: c.at, Level: level, About: about, Text: text})
}

func (c *changes) pause() {
	was, is := c.before.Paused, c.after.Paused
	switch {
	case was == nil && is != nil:
		c.add(LevelWarn, "controller", strings.TrimSuffix("paused by "+is.By+": "+is.Reason, ": "))
	case was != nil && is == nil:
		c.add(LevelInfo, "controller", "resumed")
	}
}

func (c *changes) zoneHealth() {
	for place, is := range c.after.ZoneHealth {
		if was, known := c.before.ZoneHealth[place]; !known || was.At != is.At {
			c.add(LevelWarn, place, fmt.Sprintf("%s: %s", is.Kind, is.Reason))
		}
	}
	for place := range c.before.ZoneHealth {
		if _, left := c.after.ZoneHealth[place]; !left {
			c.add(LevelInfo, place, "well again")
		}
	}
}
