package terminal

import (
	"fmt"
	"strings"
	"time"
)

// ShellQuote quotes an argument for a POSIX shell where it needs that.
func ShellQuote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`[](){}*?!&|;<>~#") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// OrDash is a text, a dash for an empty one.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Counted is a number with its noun: "1 key", "2 keys".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// RoundAge is a duration with as many digits as matter.
func RoundAge(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Moment is a time and how long ago that was.
func Moment(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("2006-01-02 15:04:05"), RoundAge(now.Sub(t)))
}
