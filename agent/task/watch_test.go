package task

import (
	"testing"
	"time"
)

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute:                "5m",
		2 * time.Hour:                  "2h",
		90 * time.Second:               "1m30s",
		time.Hour + 30*time.Minute:     "1h30m",
		10 * time.Second:               "10s",
		300 * time.Millisecond:         "300ms",
		10*time.Hour + 10*time.Minute:  "10h10m",
		20 * time.Minute:               "20m",
		100*time.Hour + 20*time.Second: "100h0m20s",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}
