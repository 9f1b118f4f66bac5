package testruns

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
)

// testStatus is how a run, or a file, ended.
type testStatus string

// The statuses. After an error the file's other runs are skipped; after a
// failure they are not.
const (
	testPassed  testStatus = "pass"
	testFailed  testStatus = "fail"
	testError   testStatus = "error"
	testSkipped testStatus = "skip"
)

// testResult is how a run ended.
type testResult struct {
	run     string
	status  testStatus
	took    time.Duration
	diags   hcl.Diagnostics
	files   map[string]*hcl.File
	details string // plan and progress
}

// testReport reports tests as they end.
type testReport struct {
	terminal *terminal.Terminal
	flags    Options

	mu    sync.Mutex // of several files at once
	count map[testStatus]int
	bad   bool // a file is wrong itself
}

func newTestReport(a *terminal.Terminal, flags Options) *testReport {
	r := &testReport{terminal: a, flags: flags, count: map[testStatus]int{}}
	r.event(testEvent{Type: eventVersion, FormatVersion: "1.0", FrayVersion: release.Version()})
	return r
}

func (r *testReport) failed() bool {
	return r.bad || r.count[testFailed]+r.count[testError] > 0
}

// status is how all went together.
func (r *testReport) status() testStatus {
	if r.failed() {
		return testFailed
	}
	return testPassed
}

// fileReport reports the runs of one file. Where several files run at once, it
// is printed when the file ends.
type fileReport struct {
	*testReport
	path     string
	out      *terminal.Terminal // where it is printed
	held     *bytes.Buffer
	status   testStatus
	tearing  bool
	unending bool // a line waits for its end
}

func (r *testReport) file(path string) *fileReport {
	f := &fileReport{testReport: r, path: path, out: r.terminal, status: testPassed}
	if r.flags.Parallelism > 1 {
		f.held = &bytes.Buffer{}
		f.out = &terminal.Terminal{Stdout: f.held, Stderr: f.held, NoColor: r.terminal.NoColor}
	}
	f.line("%s... in progress", path)
	f.event(testEvent{Type: eventFile, File: path, Progress: "starting"})
	return f
}

// line prints a line of the report for people.
func (f *fileReport) line(format string, args ...any) {
	if !f.flags.JSON {
		fmt.Fprintf(f.out.Stdout, format+"\n", args...)
	}
}

// problems reports what is wrong with the file as a whole.
func (f *fileReport) problems(files map[string]*hcl.File, diags hcl.Diagnostics) {
	if len(diags) == 0 {
		return
	}
	if diags.HasErrors() {
		f.status = testError
	}
	if f.flags.JSON {
		f.event(testEvent{Type: eventFile, File: f.path, Diagnostics: terminal.DiagnosticsAsJSON(files, diags).Diagnostics})
		return
	}
	_ = f.out.Diagnostics(files, diags)
}

// begin shows which run is under way.
func (f *fileReport) begin(run string) {
	if !f.flags.JSON && f.held == nil && terminal.IsTerminal(f.out.Stdout) {
		fmt.Fprintf(f.out.Stdout, "  run %q... ", run)
		f.unending = true
	}
	f.event(testEvent{Type: eventRun, File: f.path, Run: run, Progress: "starting"})
}

// run reports how a run ended.
func (f *fileReport) run(r testResult) {
	f.mu.Lock()
	f.count[r.status]++
	f.mu.Unlock()
	switch r.status {
	case testError:
		f.status = testError
	case testFailed:
		if f.status != testError {
			f.status = testFailed
		}
	case testPassed, testSkipped:
	}
	f.event(testEvent{
		Type: eventRun, File: f.path, Run: r.run, Progress: "complete", Status: r.status,
		Seconds: r.took.Seconds(), Diagnostics: terminal.DiagnosticsAsJSON(r.files, r.diags).Diagnostics,
	})
	if f.flags.JSON {
		return
	}
	ended := string(r.status)
	if r.status != testSkipped {
		ended += fmt.Sprintf(" (%.1fs)", r.took.Seconds())
	}
	if f.unending {
		f.unending = false
		fmt.Fprintln(f.out.Stdout, f.colored(r.status, ended))
	} else {
		f.line("  run %q... %s", r.run, f.colored(r.status, ended))
	}
	if f.flags.Verbose && r.details != "" {
		f.line("\n%s", strings.TrimRight(indentLines(r.details), "\n "))
	}
	_ = f.out.Diagnostics(r.files, r.diags)
}

func (f *fileReport) colored(status testStatus, text string) string {
	if !f.out.Color(f.out.Stdout) {
		return text
	}
	switch status {
	case testPassed:
		return "\x1b[32m" + text + "\x1b[0m"
	case testFailed, testError:
		return "\x1b[31m" + text + "\x1b[0m"
	case testSkipped:
	}
	return text
}

func indentLines(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// tearingDown reports, once, that the runs are over.
func (f *fileReport) tearingDown() {
	if f.tearing {
		return
	}
	f.tearing = true
	f.line("%s... tearing down", f.path)
	f.event(testEvent{Type: eventFile, File: f.path, Progress: "teardown"})
}

func (f *fileReport) end() {
	f.line("%s... %s", f.path, f.colored(f.status, string(f.status)))
	f.event(testEvent{Type: eventFile, File: f.path, Progress: "complete", Status: f.status})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad = f.bad || f.status == testError || f.status == testFailed
	if f.held != nil {
		_, _ = io.Copy(f.terminal.Stdout, f.held)
	}
}

// summary counts.
func (r *testReport) summary() {
	r.event(testEvent{
		Type: eventSummary, Status: r.status(),
		Counts: &testCounts{r.count[testPassed], r.count[testFailed], r.count[testError], r.count[testSkipped]},
	})
	if r.flags.JSON {
		return
	}
	result := "Success!"
	if r.failed() {
		result = "Failure!"
	}
	failed := r.count[testFailed] + r.count[testError]
	text := fmt.Sprintf("\n%s %d passed, %d failed", result, r.count[testPassed], failed)
	if skipped := r.count[testSkipped]; skipped > 0 {
		text += fmt.Sprintf(", %d skipped", skipped)
	}
	fmt.Fprintln(r.terminal.Stdout, text+".")
}
