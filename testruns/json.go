package testruns

import (
	"encoding/json"
	"fmt"

	"github.com/fray-ml/fray/terminal"
)

// testEvent is a line of fray test --json (docs/test-json.md).
type testEvent struct {
	Type          testEventType             `json:"type"`
	FormatVersion string                    `json:"format_version,omitempty"`
	FrayVersion   string                    `json:"fray_version,omitempty"`
	File          string                    `json:"file,omitempty"`
	Run           string                    `json:"run,omitempty"`
	Progress      string                    `json:"progress,omitempty"`
	Status        testStatus                `json:"status,omitempty"`
	Seconds       float64                   `json:"seconds,omitempty"`
	Diagnostics   []terminal.DiagnosticJSON `json:"diagnostics,omitempty"`
	Counts        *testCounts               `json:"counts,omitempty"`
}

// testEventType is a closed set of what events tell of.
type testEventType string

const (
	eventVersion testEventType = "version"
	eventFile    testEventType = "test_file"
	eventRun     testEventType = "test_run"
	eventSummary testEventType = "test_summary"
)

type testCounts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Errored int `json:"errored"`
	Skipped int `json:"skipped"`
}

// event prints an event, if that is asked for.
func (r *testReport) event(e testEvent) {
	if !r.flags.JSON {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := json.Marshal(e)
	if err == nil {
		_, _ = fmt.Fprintf(r.terminal.Stdout, "%s\n", data)
	}
}
