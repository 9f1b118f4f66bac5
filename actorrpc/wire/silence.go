package wire

import "time"

// Silence watches a peer that may have gone without a word: it is asked for one
// after Every, and given up Patience after that, if nothing came since.
type Silence struct {
	Every, Patience time.Duration
	asked           time.Time // zero: it was heard since
	before          time.Time // when it was heard last before it was asked
}

// Measure is what a look at a peer asks for.
type Measure int

// The measures.
const (
	Wait Measure = iota
	Ask
	GiveUp
)

// Look says what to do now about a peer that was heard last at a time, and after how
// long to look again. So a silent peer is kept for no more than Every and Patience, but for a
// process that did not look, as it was stopped itself: it asks first.
func (s *Silence) Look(heard, now time.Time) (Measure, time.Duration) {
	if !heard.Equal(s.before) {
		s.asked = time.Time{}
	}
	silent := now.Sub(heard)
	switch {
	case silent < s.Every:
		return Wait, s.Every - silent
	case s.asked.IsZero():
		s.asked, s.before = now, heard
		return Ask, min(s.Every, s.Patience)
	case now.Sub(s.asked) < s.Patience:
		return Wait, min(s.Every, s.Patience-now.Sub(s.asked))
	}
	return GiveUp, 0
}
