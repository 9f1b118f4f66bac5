package costreport

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan/accounting"
)

// Format is a closed set of how a report is printed.
type Format string

// The formats.
const (
	FormatTable Format = ""
	FormatCSV   Format = "csv"
	FormatJSON  Format = "json"
)

// Flags are what a user asks for.
type Flags struct {
	By           []string
	Since, Until string
	Last         string
	Namespace    string
	HasNamespace bool // Namespace was given
	CSV, JSON    bool
}

// Options are which part of the history is printed, and how.
type Options struct {
	Query  accounting.Query
	Format Format
	Now    time.Time
}

// OptionsOf reads flags at a time.
func OptionsOf(f *Flags, now time.Time) (*Options, error) {
	o := &Options{Now: now.UTC(), Query: accounting.Query{Since: accounting.MonthOf(now), Until: now.UTC()}}
	var err error
	if o.Query.By, err = accounting.ParseDimensions(f.By); err != nil {
		return nil, fmt.Errorf("--group-by: %w", err)
	}
	if f.HasNamespace {
		o.Query.Namespace = &f.Namespace
	}
	switch {
	case f.CSV && f.JSON:
		return nil, fmt.Errorf("--csv and --json exclude each other: give one")
	case f.CSV:
		o.Format = FormatCSV
	case f.JSON:
		o.Format = FormatJSON
	}
	if f.Last != "" {
		if f.Since != "" {
			return nil, fmt.Errorf("--last and --since exclude each other: give one")
		}
		last, err := parseSpan(f.Last)
		if err != nil {
			return nil, fmt.Errorf("--last: %w", err)
		}
		o.Query.Since = o.Query.Until.Add(-last)
	}
	if f.Until != "" {
		if o.Query.Until, err = parseTime(f.Until); err != nil {
			return nil, fmt.Errorf("--until: %w", err)
		}
		if f.Last == "" && f.Since == "" {
			o.Query.Since = accounting.MonthOf(o.Query.Until.Add(-1))
		} else if f.Last != "" {
			last, _ := parseSpan(f.Last)
			o.Query.Since = o.Query.Until.Add(-last)
		}
	}
	if f.Since != "" {
		if o.Query.Since, err = parseTime(f.Since); err != nil {
			return nil, fmt.Errorf("--since: %w", err)
		}
	}
	if o.Query.Until.After(o.Now) {
		o.Query.Until = o.Now
	}
	if !o.Query.Since.Before(o.Query.Until) {
		return nil, fmt.Errorf("there is no time from %s to %s: --since must be before --until, and before now",
			o.Query.Since.Format(shownTime), o.Query.Until.Format(shownTime))
	}
	return o, nil
}

const shownTime = "2006-01-02 15:04 UTC"

// parseTime reads a day or a moment, in UTC unless it has a zone.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04", "2006-01"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: want a day such as 2026-11-01, a month such as 2026-11, or a moment such as 2026-11-01T12:00:00Z; all are UTC", text)
}

// parseSpan reads a time span that may be in days or weeks.
func parseSpan(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, found := strings.CutSuffix(text, suffix); found {
			if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && n < 10_000 {
				return time.Duration(n * float64(unit)), nil
			}
		}
	}
	if span, err := time.ParseDuration(text); err == nil && span > 0 {
		return span, nil
	}
	return 0, fmt.Errorf("%q is no time span: want one such as 30d, 2w or 12h", text)
}
