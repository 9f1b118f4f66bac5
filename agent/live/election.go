package live

import (
	"time"

	"github.com/fray-ml/fray/clusterapi/hostlink"
)

// Times of an election.
const (
	// A host that did not relay is tried again after firstHold, and then ever later.
	firstHold = 5 * time.Second
	lastHold  = time.Hour
	// keylessHold is the same where the controller takes no relays.
	keylessHold = 15 * time.Minute
)

const (
	// groupHosts is how many hosts of a slice speak through one of them.
	groupHosts = 64
	// mostCandidates is how many of them may be the one, the first first.
	mostCandidates = 3
)

// candidate is a host that may relay.
type candidate struct {
	host     int
	failures int
	until    time.Time // it is not tried before
}

// election is through which host of its slice a host speaks: through the first of its group
// that relays. All decide for themselves and alike; the one that finds none before itself
// speaks to the controller, and relays for those after it. It has no clock.
type election struct {
	candidates []candidate
	keyless    bool // the controller takes no relays
}

func newElection(host int) *election {
	e := &election{}
	for n := host - host%groupHosts; n < host && len(e.candidates) < mostCandidates; n++ {
		e.candidates = append(e.candidates, candidate{host: n})
	}
	return e
}

// worth reports whether a candidate is worth a try.
func (e *election) worth(nth int, now time.Time) bool { return !now.Before(e.candidates[nth].until) }

// ended takes note of how a candidate did.
func (e *election) ended(nth int, how hostlink.Outcome, now time.Time) {
	c := &e.candidates[nth]
	switch how {
	case hostlink.Served, hostlink.Waited:
		c.failures, c.until = 0, time.Time{}
	case hostlink.Refused: // it may have a stream soon
		c.until = now.Add(firstHold)
	case hostlink.Failed, hostlink.Silent:
		c.until = now.Add(min(lastHold, firstHold<<min(c.failures, 16)))
		c.failures++
	}
}

// again is after which time one of the candidates is worth a try.
func (e *election) again(now time.Time) time.Duration {
	if e.keyless {
		return keylessHold
	}
	next := lastHold
	for _, c := range e.candidates {
		next = min(next, c.until.Sub(now))
	}
	return max(firstHold, next)
}
