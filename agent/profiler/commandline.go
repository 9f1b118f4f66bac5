package profiler

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// py-spy names processes by their command lines, which may have secrets: profiles are kept and shown.

// withoutCommandLines is a speedscope profile whose processes have numbers only.
func withoutCommandLines(data []byte) ([]byte, error) {
	var document map[string]json.RawMessage
	var shared struct {
		Frames []map[string]any `json:"frames"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("read what py-spy wrote: %w", err)
	}
	if err := json.Unmarshal(document["shared"], &shared); err != nil {
		return nil, fmt.Errorf("read what py-spy wrote: %w", err)
	}
	process := regexp.MustCompile(`(?s)^(process [0-9]+):.*$`) // process 12:"python train.py"
	for _, frame := range shared.Frames {
		if name, ok := frame["name"].(string); ok {
			frame["name"] = process.ReplaceAllString(name, "$1")
		}
	}
	frames, err := json.Marshal(shared)
	if err != nil {
		return nil, err
	}
	document["shared"] = frames
	return json.Marshal(document)
}

// withoutCommandLine is what py-spy dump prints from the version of Python on: before are the process and its command line.
func withoutCommandLine(dump string) string {
	if at := strings.Index(dump, "\nPython v"); at >= 0 {
		return dump[at+1:]
	}
	if at := strings.Index(dump, "\nThread "); at >= 0 {
		return dump[at+1:]
	}
	return ""
}
