package live

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/clusterapi/hostlink"
)

func TestCandidates(t *testing.T) {
	for host, want := range map[int][]int{0: nil, 1: {0}, 2: {0, 1}, 3: {0, 1, 2}, 63: {0, 1, 2}, 64: nil, 65: {64}, 200: {192, 193, 194}} {
		e := newElection(host)
		var got []int
		for _, c := range e.candidates {
			got = append(got, c.host)
		}
		if len(got) != len(want) {
			t.Errorf("candidates of host %d are %v, want %v", host, got, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("candidates of host %d are %v, want %v", host, got, want)
			}
		}
	}
}

// A host that does not relay is tried again after ever longer times, until it does.
func TestHolds(t *testing.T) {
	e, now := newElection(5), time.Unix(1000, 0)
	fail := func(nth int, how hostlink.Outcome, want time.Duration) {
		t.Helper()
		e.ended(nth, how, now)
		if e.worth(nth, now.Add(want-1)) || !e.worth(nth, now.Add(want)) {
			t.Errorf("candidate %d is held until %s, want for %s", nth, e.candidates[nth].until.Sub(now), want)
		}
	}
	if got := e.again(now); got != firstHold || !e.worth(0, now) {
		t.Errorf("at first a try is worth it after %s, want %s", got, firstHold)
	}
	for n, want := range []time.Duration{5, 10, 20, 40} {
		fail(0, []hostlink.Outcome{hostlink.Failed, hostlink.Silent}[n%2], want*time.Second)
	}
	fail(0, hostlink.Refused, firstHold)
	fail(0, hostlink.Failed, 80*time.Second)
	for range 100 {
		e.ended(0, hostlink.Failed, now)
	}
	fail(0, hostlink.Failed, lastHold)
	fail(1, hostlink.Failed, firstHold)
	fail(2, hostlink.Failed, firstHold)
	fail(2, hostlink.Failed, 2*firstHold)
	fail(1, hostlink.Failed, 2*firstHold)
	if got := e.again(now); got != 2*firstHold {
		t.Errorf("with all held a try is worth it after %s, want when the first is not any more", got)
	}
	e.ended(0, hostlink.Served, now)
	if !e.worth(0, now) {
		t.Error("a candidate that served is held")
	}
	fail(0, hostlink.Failed, firstHold)
	e.keyless = true
	if got := e.again(now); got != keylessHold {
		t.Errorf("where the controller takes no relays a try is worth it after %s, want %s", got, keylessHold)
	}
}
