package soak

import (
	"math/rand/v2"
	"time"
)

// dice make every choice of one scheduler step, from one number of the tape, so
// that a step can be left out without changing what the others choose.
type dice struct{ r *rand.Rand }

func roll(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// n is one of 0 … k-1.
func (d dice) n(k int) int { return d.r.IntN(k) }

// chance is true so many times in a thousand.
func (d dice) chance(permille int) bool { return d.r.IntN(1000) < permille }

func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.r.Int64N(int64(high-low)+1))
}

// conditions is what one run has to stand. Every run leaves some faults out, since
// a world in which everything happens hides what one fault alone would do.
type conditions struct {
	applies int // clients that change the stack
	guards  int // clients that keep it, with a clock of their own
	watches int // controller.Run

	skew  time.Duration // at most, either way
	drift float64       // at most, in seconds per second

	// In a thousand store and provider calls each.
	failBefore, lostReply, conflictReply, slowReply, slowSend, lateLanding, crashAfter, stopBefore int

	fault  int // in a thousand steps
	faults []fault

	createTakes, deleteTakes, bootTakes, stopTakes time.Duration
	capacity                                       int // slices that can be had
}

func drawConditions(seed uint64) conditions {
	d := roll(seed, 1)
	some := func(permille int) int {
		if d.chance(400) {
			return 0
		}
		return 1 + d.n(permille)
	}
	w := conditions{
		applies: 1 + d.n(3), guards: d.n(2), watches: d.n(2),
		failBefore: some(40), lostReply: some(40), conflictReply: some(40), slowReply: some(150), slowSend: some(60),
		lateLanding: some(40), crashAfter: some(6), stopBefore: some(30),
		fault:       2 + d.n(20),
		createTakes: d.between(time.Second, 40*time.Second), deleteTakes: d.between(time.Second, 20*time.Second),
		bootTakes: d.between(time.Second, 10*time.Second), stopTakes: d.between(100*time.Millisecond, 8*time.Second),
		capacity: 1000,
	}
	for w.applies+w.guards+w.watches < 3 {
		w.applies++
	}
	if d.chance(600) {
		w.skew, w.drift = d.between(0, 4*time.Second), float64(d.n(5))/1000
	}
	if d.chance(250) {
		w.capacity = 3 + d.n(8)
	}
	for _, m := range faults() {
		if d.chance(600) {
			w.faults = append(w.faults, m)
		}
	}
	return w
}

// splits reports whether two clients may rightly believe for a moment that they
// hold the lease: only clocks that disagree and force bring that about.
func (w *conditions) splits() bool {
	if w.skew > 0 || w.drift > 0 {
		return true
	}
	for _, m := range w.faults {
		if m.splits {
			return true
		}
	}
	return false
}
