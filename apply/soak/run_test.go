package soak

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// run is one world, from an empty provider to the end of its tape and until all
// is well again. It lives in a synctest bubble, whose clock only its scheduler
// moves; every choice comes from the seed and the tape.
type run struct {
	seed       uint64
	tape       []uint64
	conditions conditions
	began      time.Time
	verbose    bool

	objects *storetest.Memory
	cloud   *cloud
	oracle  *oracle
	tally   *tally
	clients []*client
	running sync.WaitGroup

	steps int
	calm  bool // no more faults
	ebb   bool // no more changes

	calmed time.Time // since when
	left   time.Time // since when all clients end

	mu      sync.Mutex
	pending []*call
	landing []landing
	trace   []string
	hash    uint64 // of the trace, also where it is not kept
	broken  *violation
}

// landing is a write that is under way while its sender has given it up.
type landing struct {
	at time.Time
	do func()
}

// violation is the first event that must not happen and did.
type violation struct {
	rule string
	text string
	step int
}

func newRun(seed uint64, tape []uint64) *run {
	return &run{seed: seed, tape: tape, conditions: drawConditions(seed), tally: newTally()}
}

const lineage = "soaksoaksoaksoaksoaksoakso"

// live runs the whole of it, inside a bubble.
func (r *run) live() {
	r.began = time.Now()
	r.objects = storetest.NewMemory()
	doc := state.Document{FormatVersion: state.FormatVersion, Lineage: lineage, Serial: 1, Desired: base()}
	r.oracle, r.cloud = newOracle(r, doc), newCloud(r)
	data, err := state.Encode(doc)
	if err == nil {
		_, err = r.objects.Put(context.Background(), store.StateKey, data, store.Absent)
	}
	if err != nil {
		r.fail("format", "first state: %v", err)
		return
	}
	for _, as := range r.roles() {
		r.clients = append(r.clients, r.start(len(r.clients), as, nil))
	}
	for i := 0; i < len(r.tape) && r.broken == nil; i++ {
		r.step(roll(r.tape[i], 0))
	}
	r.tally.plus("step with faults", r.steps)
	if r.broken == nil {
		before := r.steps
		r.settle()
		r.tally.plus("step until all was well again", r.steps-before)
	}
	for _, c := range r.clients {
		c.die()
	}
	r.drain()
}

// drain lets dead processes come to their end.
func (r *run) drain() {
	ended := make(chan struct{})
	go func() { r.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(24 * time.Hour):
		r.fail("ends", "a client that was killed goes on")
	}
}

func (r *run) roles() []role {
	var roles []role
	for range r.conditions.applies {
		roles = append(roles, roleApply)
	}
	for range r.conditions.guards {
		roles = append(roles, roleGuard)
	}
	for range r.conditions.watches {
		roles = append(roles, roleWatch)
	}
	return roles
}

// step does one of these: a call is let through, time passes, or there is a
// fault.
func (r *run) step(d dice) {
	synctest.Wait()
	r.steps++
	calls := r.eligible()
	switch {
	case !r.calm && d.chance(r.conditions.fault):
		r.suffer(d)
	case len(calls) == 0 || r.left.IsZero() && d.chance(150):
		r.advance(d)
	default:
		k := calls[d.n(len(calls))]
		v, now := r.judge(k, d)
		if !now {
			return
		}
		r.note("%s %s %s: %s", k.client, k.verb, k.key, v)
		r.release(k, v)
		synctest.Wait()
	}
}

func (r *run) advance(d dice) {
	left := d.between(time.Millisecond, 50*time.Millisecond)
	switch n := d.n(100); {
	case n < 1:
		left = d.between(3*time.Second, 10*time.Second)
	case n < 12:
		left = d.between(500*time.Millisecond, 3*time.Second)
	case n < 45:
		left = d.between(50*time.Millisecond, 500*time.Millisecond)
	}
	if !r.left.IsZero() {
		left = min(left, 100*time.Millisecond)
	}
	r.note("%v pass", left)
	for left > 0 && r.violated() == nil {
		slice := min(left, time.Second)
		time.Sleep(slice)
		synctest.Wait()
		left -= slice
		r.land()
		r.cloud.live()
	}
}

// later has a write land after its sender has given it up.
func (r *run) later(after time.Duration, do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.landing = append(r.landing, landing{time.Now().Add(after), do})
}

func (r *run) land() {
	now := time.Now()
	r.mu.Lock()
	var due, left []landing
	for _, l := range r.landing {
		if l.at.After(now) {
			left = append(left, l)
		} else {
			due = append(due, l)
		}
	}
	r.landing = left
	r.mu.Unlock()
	for _, l := range due {
		r.tally.add("write landed late")
		l.do()
	}
	for _, c := range r.clients {
		r.mu.Lock()
		if c.suspended && !c.resumes.After(now) {
			c.suspended = false
		}
		r.mu.Unlock()
	}
}

func (r *run) stopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ebb
}

// changeOf is the change of an id.
func (r *run) changeOf(id string) change {
	return change{id: id, seed: hash(fmt.Sprint(r.seed, id))}
}

// fail records the first event that must not happen.
func (r *run) fail(rule, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		r.broken = &violation{rule: rule, text: fmt.Sprintf(format, args...), step: r.steps}
	}
}

func (r *run) violated() *violation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// note adds a line to the trace.
func (r *run) note(format string, args ...any) {
	line := fmt.Sprintf("%5d %10s  ", r.steps, r.stamp(time.Now())) + fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hash = r.hash*31 + hash(line) // order matters
	if r.verbose {
		r.trace = append(r.trace, line)
	}
}

func (r *run) stamp(at time.Time) string { return at.Sub(r.began).Round(time.Millisecond).String() }

// truly is the true time of a time by a client's clock.
func (r *run) truly(c *client, at time.Time) time.Time {
	elapsed := at.Sub(r.began) - c.offset
	return r.began.Add(time.Duration(float64(elapsed) / (1 + c.drift)))
}

func (v *violation) String() string {
	return fmt.Sprintf("%s: %s (at step %d)", v.rule, v.text, v.step)
}
