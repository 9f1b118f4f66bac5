package wire

import (
	"testing"
	"time"
)

// A peer is asked after 10 s of silence and given up after 30 s of it, wherever in
// time its last word falls; who hears it asks again first.
func TestSilence(t *testing.T) {
	tests := []struct {
		name   string
		heard  []time.Duration // when it says something by itself
		stop   time.Duration   // until when it answers when it is asked
		paused time.Duration   // for so long from 5 s on it is not checked
		want   time.Duration   // when it is given up
		asks   int
	}{
		{"silent from the start", nil, 0, 0, 30 * time.Second, 1},
		{"a word between two looks", []time.Duration{time.Second}, 0, 0, 31 * time.Second, 1},
		{"a word just after a look", []time.Duration{10*time.Second + 1}, 0, 0, 40*time.Second + 1, 2},
		{"a word while it is asked", []time.Duration{29 * time.Second}, 0, 0, 59 * time.Second, 2},
		{"it answers for a minute", nil, time.Minute, 0, 90 * time.Second, 7},
		{"the process was stopped", nil, 0, time.Hour, time.Hour + 25*time.Second, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := Silence{Every: 10 * time.Second, Patience: 20 * time.Second}
			start := time.Unix(1_000_000, 0)
			now, heard, asks := start.Add(s.Every), start, 0
			if test.paused > 0 {
				now = start.Add(5*time.Second + test.paused)
			}
			for {
				for _, at := range test.heard {
					if word := start.Add(at); !word.After(now) && word.After(heard) {
						heard = word
					}
				}
				measure, next := s.Look(heard, now)
				if measure == GiveUp {
					break
				}
				if measure == Ask {
					asks++
					if !now.After(start.Add(test.stop)) && test.stop > 0 {
						heard = now
					}
				}
				if next <= 0 || next > s.Every {
					t.Fatalf("at %s the next look is after %s, want at most %s", now.Sub(start), next, s.Every)
				}
				now = now.Add(next)
			}
			if got := now.Sub(start); got != test.want || asks != test.asks {
				t.Errorf("given up after %s, asked %d times; want %s and %d", got, asks, test.want, test.asks)
			}
		})
	}
}
