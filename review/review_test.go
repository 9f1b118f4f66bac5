package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/review"
	"github.com/fray-ml/fray/schema"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

// A marker is read as it was written, whatever the names in it are, and ends with its line.
func TestMarkerIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := review.Marker{
			Kind: review.KindPlan, Target: review.Target{Dir: rapid.String().Draw(t, "dir"), Workspace: rapid.String().Draw(t, "workspace")},
			Commit: "abc", Run: rapid.Int64().Draw(t, "run"), Attempt: 2, Changes: true, Plan: "def",
		}
		text := m.Encode()
		if strings.Contains(text, "\n") || strings.Count(text, "-->") != 1 || strings.Contains(strings.TrimPrefix(text, "<!--"), "<") {
			t.Fatalf("%q is not one comment", text)
		}
		got, ok := review.ParseMarker(text + "\nthe plan")
		if want := strings.ToValidUTF8(m.Dir, "\uFFFD"); !ok || got.Run != m.Run || got.Dir != want {
			t.Fatalf("got %+v, want %+v", got, m)
		}
	})
}

func TestMarkerCountsOnTheFirstLineAlone(t *testing.T) {
	m := review.Marker{Kind: review.KindPlan}.Encode()
	for _, body := range []string{"", "text\n" + m, " " + m, m[:len(m)-1], "<!-- fray {bad} -->"} {
		if got, ok := review.ParseMarker(body); ok {
			t.Errorf("%q: got %+v", body, got)
		}
	}
	if _, ok := review.ParseMarker(m + "\r\ntext"); !ok {
		t.Error("a forge that ends lines with CR LF hides the marker")
	}
}

// reported is a report of a plan with many changes.
func reported(changes int) *review.Report {
	p := &plan.Plan{}
	for i := range changes {
		p.Changes = append(p.Changes, plan.Change{Addr: schema.ScopedAddress(schema.KindReservation, fmt.Sprint("pool", i)), Verb: plan.VerbCreate})
	}
	return &review.Report{
		Target: review.Target{Dir: "stacks/train", Workspace: "prod"}, Run: review.Run{Commit: "0123456789abcdef", ID: 7, Attempt: 1, URL: "https://ci.example/7"}, Version: "1",
		Planned: &review.Planned{Counts: p.Counts(), Changes: changes > 0, Shown: markdown.Input{Plan: p}, File: "fray.plan", Digest: "abc"},
	}
}

// The whole comment fits GitHub's limit, with its marker and everything below the plan; counts are
// of the whole plan.
func TestCommentFits(t *testing.T) {
	r := reported(3000)
	for i := range 300 {
		r.Problems = append(r.Problems, review.Problem{Severity: review.SeverityWarning, Title: fmt.Sprint("warning ", i), Text: strings.Repeat("ä", 300), File: "fray.hcl", Line: i})
	}
	r.Notes = []string{"octocat is changing this stack now"}
	text := r.Comment()
	if n := utf8.RuneCountInString(text); n > 65_536 || n < 30_000 {
		t.Errorf("the comment has %d characters", n)
	}
	if !strings.Contains(text, "3000 to create") || !strings.Contains(text, "the artifact") || !strings.Contains(text, "octocat") {
		t.Errorf("the comment lacks counts, artifact or note:\n%.400s", text)
	}
	if m, ok := review.ParseMarker(text); !ok || m.Plan != "abc" || !m.Changes {
		t.Errorf("got %+v, %v", m, ok)
	}
	if n := len(r.Summary(100_000)); n > 100_000 {
		t.Errorf("the summary has %d bytes", n)
	}
}

// Exit codes 0, 2 and 1 become outputs, and 2 fails no job (check 17).
func TestOutcomes(t *testing.T) {
	failed := func(r *review.Report) *review.Report { r.Failure = "no key"; return r }
	denied := func(r *review.Report) *review.Report {
		r.Policies = []markdown.PolicyResult{{Name: "p", Severity: markdown.SeverityDeny, Status: markdown.PolicyFailed}}
		return r
	}
	warned := func(r *review.Report) *review.Report {
		r.Policies = []markdown.PolicyResult{{Name: "p", Severity: markdown.SeverityWarn, Status: markdown.PolicyFailed}}
		return r
	}
	fork := &review.Report{Skipped: review.SkippedFork}
	for name, c := range map[string]struct {
		report  *review.Report
		outcome review.Outcome
		code    string
		fails   bool
		marked  string // plan that an apply would find
	}{
		"unchanged": {reported(0), review.OutcomeUnchanged, "0", false, "abc"},
		"changes":   {reported(2), review.OutcomeChanges, "2", false, "abc"},
		"failed":    {failed(reported(2)), review.OutcomeFailed, "1", true, ""},
		"denied":    {denied(reported(2)), review.OutcomeDenied, "1", true, ""}, // check 18: nothing is found to be applied
		"warned":    {warned(reported(2)), review.OutcomeChanges, "2", false, "abc"},
		"fork":      {fork, review.OutcomeValidated, "0", false, ""},
	} {
		outputs := c.report.Outputs()
		if got := c.report.Outcome(); got != c.outcome || got.Failed() != c.fails || !slices.Contains(outputs, review.Output{Name: "exitcode", Value: c.code}) {
			t.Errorf("%s: got %s, %v", name, got, outputs)
		}
		if got := c.report.Marker().Plan; got != c.marked {
			t.Errorf("%s: the marker has plan %q, want %q", name, got, c.marked)
		}
	}
}

func TestCostOutputs(t *testing.T) {
	r := reported(1)
	for name, c := range map[string]struct {
		cost      change.CostTotal
		low, high string
	}{
		"nothing":      {change.CostTotal{}, "0.00", "0.00"},
		"known":        {change.CostTotal{After: accelerators.Price{Low: 1.234, High: 5}}, "1.23", "5.00"},
		"not known":    {change.CostTotal{UnknownAfter: 2}, "", ""},
		"partly known": {change.CostTotal{After: accelerators.Price{Low: 1, High: 2}, UnknownAfter: 2}, "1.00", "2.00"},
	} {
		r.Planned.Cost = c.cost
		got := r.Outputs()
		if !slices.Contains(got, review.Output{Name: "cost_low", Value: c.low}) || !slices.Contains(got, review.Output{Name: "cost_high", Value: c.high}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// No value of an output adds another output.
func TestOutputsAreInert(t *testing.T) {
	hostile := []review.Output{{Name: "plan", Value: "a\nchanges=true\nEOF\nfake<<X\ny\nX"}, {Name: "changes", Value: "false"}}
	lines := strings.Split(review.OutputLines(hostile, "UNGUESSED"), "\n")
	if lines[0] != "plan<<UNGUESSED" || lines[7] != "UNGUESSED" || lines[8] != "changes=false" {
		t.Errorf("got %q", lines)
	}
	if got := review.Dotenv(hostile); got != "FRAY_CHANGES=false\n" {
		t.Errorf("got %q", got)
	}
}

func TestAnnotations(t *testing.T) {
	var problems []review.Problem
	for line := 1; line <= 15; line++ {
		problems = append(problems, review.Problem{Severity: review.SeverityError, Title: "T", Text: "first\nsecond: 100%", File: "a,b:c%.hcl", Line: line, EndLine: line, Column: 3, EndLast: 8})
	}
	problems = append(problems, review.Problem{Severity: review.SeverityWarning, Title: "no place"}, review.Problem{Severity: review.SeverityError, Title: "several lines", File: "x.hcl", Line: 2, EndLine: 4, Column: 5})
	got := review.Annotations(problems, []forge.File{{Path: "a,b:c%.hcl", Lines: []forge.Lines{{From: 12, To: 12}}}})
	if len(got) != 11 {
		t.Fatalf("got %d: %q", len(got), got)
	}
	if want := "::error file=a%2Cb%3Ac%25.hcl,line=12,endLine=12,col=3,endColumn=7,title=T::first%0Asecond: 100%25"; got[0] != want {
		t.Errorf("got  %q\nwant %q", got[0], want)
	}
	if want := "::warning title=no place::no place"; got[10] != want {
		t.Errorf("got %q, want %q", got[10], want)
	}
	if one := review.Annotations(problems[16:], nil); one[0] != "::error file=x.hcl,line=2,endLine=4,title=several lines::several lines" {
		t.Errorf("got %q", one)
	}
}

// Names become code from which nothing escapes.
func TestCodeIsInert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("`a@#1|<>\n\r\t &"))).Draw(t, "text")
		got := review.Code(text)
		ticks := len(got) - len(strings.TrimLeft(got, "`"))
		inner := got[ticks : len(got)-ticks]
		if strings.ContainsAny(got, "\n\r") || strings.Contains(inner, strings.Repeat("`", ticks)) || strings.HasPrefix(inner, "`") || strings.HasSuffix(inner, "`") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestArtifactNamesAreUnique(t *testing.T) {
	seen := map[string]review.Target{}
	for _, target := range []review.Target{{Dir: "."}, {Dir: "a", Workspace: "b"}, {Dir: "a-b"}, {Dir: "a/b"}, {Dir: "a:b"}, {Dir: strings.Repeat("x", 300)}, {Dir: strings.Repeat("x", 301)}} {
		name := target.Artifact()
		if other, ok := seen[name]; ok || len(name) > 90 || strings.ContainsAny(name, `":<>|*?\/`+"\r\n") {
			t.Errorf("%+v and %+v: %q", target, other, name)
		}
		seen[name] = target
	}
}

// Drift that is not known changes no issue, and an older run none of a newer one.
func TestDriftIssues(t *testing.T) {
	d := &review.Drift{Target: review.Target{Dir: "."}, Run: review.Run{ID: 5}, Version: "1", Found: []plan.Drift{{Addr: schema.ScopedAddress(schema.KindReservation, "pool"), Found: "@octocat #1 ``` is gone"}}}
	opened := d.ChooseIssue(nil, "bot")
	if opened.Action != review.OpenIssue || strings.Contains(strings.ReplaceAll(opened.Issue.Body, "````@octocat #1 ``` is gone````", ""), "@octocat") {
		t.Fatalf("got %+v", opened)
	}
	issue := opened.Issue
	issue.Number, issue.Author = 3, "bot"
	none := &review.Drift{Target: d.Target, Run: review.Run{ID: 6}, Version: "1"}
	unknown := &review.Drift{Target: d.Target, Run: review.Run{ID: 6}, Version: "1", Failure: "no key"}
	older := &review.Drift{Target: d.Target, Run: review.Run{ID: 4}, Version: "1"}
	elsewhere := &review.Drift{Target: review.Target{Dir: "other"}, Run: review.Run{ID: 6}, Version: "1"}
	for name, c := range map[string]struct {
		drift *review.Drift
		want  review.IssueAction
	}{"again": {d, review.EditIssue}, "gone": {none, review.CloseIssue}, "unknown": {unknown, review.LeaveIssue}, "older": {older, review.LeaveIssue}, "elsewhere": {elsewhere, review.LeaveIssue}} {
		if got := c.drift.ChooseIssue([]forge.Issue{issue}, "bot"); got.Action != c.want {
			t.Errorf("%s: got %+v, want %s", name, got, c.want)
		}
	}
	issue.Author = "mallory"
	if got := none.ChooseIssue([]forge.Issue{issue}, "bot"); got.Action != review.LeaveIssue {
		t.Errorf("an issue of another author: got %+v", got)
	}
}

func TestApprovals(t *testing.T) {
	merged := forge.Pull{Number: 7, Head: "aaaa", Merged: true, Merge: "bbbb"}
	open := forge.Pull{Number: 7, Head: "aaaa"}
	planned := review.Marker{Commit: "aaaa", Changes: true, Plan: "sum"}
	for name, c := range map[string]struct {
		approval review.Approval
		want     string
	}{
		"merged":         {review.Approval{Pull: merged, Commit: "bbbb", Plan: planned, Found: true}, ""},
		"no comment":     {review.Approval{Pull: merged, Commit: "bbbb"}, "has no comment"},
		"older plan":     {review.Approval{Pull: merged, Commit: "bbbb", Plan: review.Marker{Commit: "9999", Changes: true, Plan: "sum"}, Found: true}, "is of commit 9999"},
		"not saved":      {review.Approval{Pull: merged, Commit: "bbbb", Plan: review.Marker{Commit: "aaaa", Changes: true}, Found: true}, "was not saved"},
		"no changes":     {review.Approval{Pull: open, Commit: "aaaa", Plan: review.Marker{Commit: "aaaa"}, Found: true}, ""},
		"open":           {review.Approval{Pull: open, Commit: "aaaa", Plan: planned, Found: true}, "is not merged"},
		"approved":       {review.Approval{Pull: open, Commit: "aaaa", Plan: planned, Found: true, Needed: 1, Approvals: []forge.Approval{{By: "alice", Commit: "aaaa"}}}, ""},
		"approved older": {review.Approval{Pull: open, Commit: "aaaa", Plan: planned, Found: true, Needed: 1, Approvals: []forge.Approval{{By: "alice", Commit: "9999"}}}, "has 0 approvals of commit aaaa, and 1 needed"},
		"twice one":      {review.Approval{Pull: merged, Commit: "bbbb", Plan: planned, Found: true, Needed: 2, Approvals: []forge.Approval{{By: "alice"}, {By: "alice"}}}, "has 1 approval"},
		"other commit":   {review.Approval{Pull: open, Commit: "cccc", Plan: planned, Found: true, Needed: 1}, "is not merged, and commit cccc is not its head"},
	} {
		got := c.approval.Rejection()
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
