package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/forge"
)

// Severity is a closed set.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is a mistake in the files, or something to be aware of.
type Problem struct {
	Severity Severity
	Title    string
	Text     string
	// File is within the repository, with slashes; "": it has no place. Lines and columns count from 1.
	File            string
	Line, EndLine   int
	Column, EndLast int // EndLast is the column behind the last character
}

// Place is "train/fray.hcl:3", "" without a place.
func (p Problem) Place() string {
	if p.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// maxAnnotations is how many annotations of one severity GitHub shows of a step.
const maxAnnotations = 10

// Annotations are the workflow commands by which GitHub shows problems beside the files.
// It shows a few only, so that those on lines of the diff come first, then those in files that
// the pull request changes.
func Annotations(problems []Problem, changed []forge.File) []string {
	var lines []string
	for _, severity := range []Severity{SeverityError, SeverityWarning} {
		of := slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Severity != severity })
		slices.SortStableFunc(of, func(a, b Problem) int { return cmp.Compare(distance(a, changed), distance(b, changed)) })
		for _, p := range of[:min(len(of), maxAnnotations)] {
			lines = append(lines, p.annotation())
		}
	}
	return lines
}

// distance is 0 on a line of the diff, 1 in a file of it, 2 elsewhere.
func distance(p Problem, changed []forge.File) int {
	for _, f := range changed {
		switch {
		case f.Path != p.File:
		case slices.ContainsFunc(f.Lines, func(l forge.Lines) bool { return l.Has(p.Line) }):
			return 0
		default:
			return 1
		}
	}
	return 2
}

// annotation is the workflow command of one problem.
func (p Problem) annotation() string {
	var properties []string
	add := func(name, value string) { properties = append(properties, name+"="+property(value)) }
	if p.File != "" {
		add("file", p.File)
		add("line", fmt.Sprint(p.Line))
		if p.EndLine >= p.Line {
			add("endLine", fmt.Sprint(p.EndLine))
		}
		if p.Column > 0 && p.EndLine == p.Line { // GitHub takes columns of one line only
			add("col", fmt.Sprint(p.Column))
			add("endColumn", fmt.Sprint(max(p.Column, p.EndLast-1)))
		}
	}
	add("title", p.Title)
	return fmt.Sprintf("::%s %s::%s", p.Severity, strings.Join(properties, ","), message(cmp.Or(p.Text, p.Title)))
}

// Quality is a problem as GitLab's reports of code quality have it.
type Quality struct {
	Description string          `json:"description"`
	CheckName   string          `json:"check_name"`
	Fingerprint string          `json:"fingerprint"`
	Severity    string          `json:"severity"`
	Location    qualityLocation `json:"location"`
}

type qualityLocation struct {
	Path  string       `json:"path"`
	Lines qualityLines `json:"lines"`
}

type qualityLines struct {
	Begin int `json:"begin"`
}

// Qualities are the problems that have a place, for GitLab to show beside the files.
func Qualities(problems []Problem) []Quality {
	out := []Quality{}
	for _, p := range problems {
		if p.File == "" {
			continue
		}
		severity := "major"
		if p.Severity == SeverityWarning {
			severity = "minor"
		}
		sum := sha256.Sum256([]byte(strings.Join([]string{p.File, fmt.Sprint(p.Line), p.Title, p.Text}, "\x00")))
		out = append(out, Quality{
			Description: strings.TrimSpace(p.Title + ". " + p.Text), CheckName: "fray", Fingerprint: hex.EncodeToString(sum[:16]), Severity: severity,
			Location: qualityLocation{Path: p.File, Lines: qualityLines{Begin: p.Line}},
		})
	}
	return out
}

// Warning is the workflow command by which GitHub shows a warning without a place.
func Warning(text string) string { return "::warning title=fray::" + message(text) }
