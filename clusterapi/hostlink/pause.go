package hostlink

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// hurriedPause is the most that a host pauses for which others wait.
	hurriedPause = time.Second
	// newsPause is about how long a client with news pauses after a stream that has ended, where others
	// come back over seconds: what became of a task does not wait for the turn of its host.
	newsPause = time.Second
)

// pause is the time between two streams, which others may shorten.
type pause struct {
	hurry chan struct{} // has an element while hosts wait for a stream to be relayed by
	press chan struct{} // the same for hosts that have news
}

func newPause() pause { return pause{hurry: make(chan struct{}, 1), press: make(chan struct{}, 1)} }

// wait waits for about so long, spread at random: but hardly longer than the least time while other
// hosts wait for this one, and than withNews once one of them or a host of its own has news. It reports
// false once ctx has ended.
func (p *pause) wait(ctx context.Context, about, least, withNews time.Duration, news <-chan struct{}) bool {
	share := rand.Float64()
	spread := func(d time.Duration) time.Duration { return d/4 + time.Duration(share*float64(d)) }
	ends := time.Now().Add(spread(about))
	over, patient := time.NewTimer(time.Until(ends)), time.NewTimer(least)
	defer over.Stop()
	defer patient.Stop()
	var hurry <-chan struct{} // nil: not heard yet
	for {
		pressed := false
		select {
		case <-patient.C:
			hurry = p.hurry
		case <-news:
			news, pressed = nil, true
		case <-p.press:
			pressed = true
		case <-hurry:
			return true
		case <-over.C:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
		if early := time.Now().Add(spread(withNews)); pressed && early.Before(ends) {
			ends = early
			over.Reset(time.Until(ends))
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
