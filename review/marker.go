package review

import (
	"encoding/json"
	"strings"
)

// Kind is a closed set of what is commented on.
type Kind string

// The kinds.
const (
	KindPlan  Kind = "plan"
	KindApply Kind = "apply"
	KindDrift Kind = "drift"
)

// Marker is what the first line of a comment or issue hides: what it is about, and which
// run wrote it.
type Marker struct {
	Kind Kind `json:"kind"`
	Target
	Commit  string `json:"commit,omitempty"`
	Run     int64  `json:"run,omitempty"`
	Attempt int64  `json:"attempt,omitempty"`
	// Changes says that the plan has something to do, and Plan is the SHA-256 of the file that it
	// was saved to, "" where it was not.
	Changes bool   `json:"changes,omitempty"`
	Plan    string `json:"plan,omitempty"`
}

const (
	markerStart = "<!-- fray "
	markerEnd   = " -->"
)

// Encode is the marker as an HTML comment, which no value can end: JSON has < and > escaped.
func (m Marker) Encode() string {
	data, err := json.Marshal(m)
	if err != nil {
		return "" // strings, numbers and booleans always encode
	}
	return markerStart + string(data) + markerEnd
}

// ParseMarker reads the marker of a comment. It counts on the first line alone, which no
// text of a plan reaches.
func ParseMarker(body string) (Marker, bool) {
	line, _, _ := strings.Cut(body, "\n")
	text, starts := strings.CutPrefix(strings.TrimRight(line, "\r"), markerStart)
	text, ends := strings.CutSuffix(text, markerEnd)
	var m Marker
	if !starts || !ends || json.Unmarshal([]byte(text), &m) != nil {
		return Marker{}, false
	}
	return m, true
}

// about reports whether two markers are of the same comment.
func (m Marker) about(o Marker) bool { return m.Kind == o.Kind && m.Target == o.Target }

// after reports whether a marker was written by a later run than another.
func (m Marker) after(o Marker) bool {
	if m.Run != o.Run {
		return m.Run > o.Run
	}
	return m.Attempt > o.Attempt
}
