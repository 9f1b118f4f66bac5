package main

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// testEvent is a line of fray test --json (docs/test-json.md).
type testEvent struct {
	Type          testEventType        `json:"type"`
	FormatVersion string               `json:"format_version,omitempty"`
	FrayVersion   string               `json:"fray_version,omitempty"`
	File          string               `json:"file,omitempty"`
	Run           string               `json:"run,omitempty"`
	Progress      string               `json:"progress,omitempty"`
	Status        testStatus           `json:"status,omitempty"`
	Seconds       float64              `json:"seconds,omitempty"`
	Diagnostics   []testDiagnosticJSON `json:"diagnostics,omitempty"`
	Counts        *testCounts          `json:"counts,omitempty"`
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

type testDiagnosticJSON struct {
	Severity string         `json:"severity"`
	Summary  string         `json:"summary"`
	Detail   string         `json:"detail"`
	Range    *testRangeJSON `json:"range,omitempty"`
}

type testRangeJSON struct {
	Filename string           `json:"filename"`
	Start    testPositionJSON `json:"start"`
	End      testPositionJSON `json:"end"`
}

type testPositionJSON struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

func testDiagnostics(diags hcl.Diagnostics) []testDiagnosticJSON {
	var out []testDiagnosticJSON
	for _, d := range diags {
		j := testDiagnosticJSON{Severity: "error", Summary: d.Summary, Detail: d.Detail}
		if rng := d.Subject; rng != nil {
			j.Range = &testRangeJSON{
				rng.Filename, testPositionJSON{rng.Start.Line, rng.Start.Column, rng.Start.Byte}, testPositionJSON{rng.End.Line, rng.End.Column, rng.End.Byte},
			}
		}
		if d.Severity == hcl.DiagWarning {
			j.Severity = "warning"
		}
		out = append(out, j)
	}
	return out
}

// event prints an event, if that is asked for.
func (r *testReport) event(e testEvent) {
	if !r.flags.json {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := json.Marshal(e)
	if err == nil {
		_, _ = fmt.Fprintf(r.app.stdout, "%s\n", data)
	}
}
