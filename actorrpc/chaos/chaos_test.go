package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// least is how many calls of each caller must return in each 20 s, or nothing is proved.
const least = 10

// TestChaos is the storm: -chaos.for says how long, -chaos.seed which.
func TestChaos(t *testing.T) {
	w := newWorld(t)
	t.Logf("seed %d (-chaos.seed)", w.seed)
	w.populate(t)
	w.all("go", "going")
	n := &nemesis{world: w, random: rand.New(rand.NewPCG(w.seed, 7))}
	i, err := newIntruder(w)
	if err != nil {
		t.Fatal(err)
	}
	storm := w.storm(t.Context())
	var intruding sync.WaitGroup
	intruding.Go(func() { i.intrude(storm) })
	n.rage(storm)
	intruding.Wait()
	w.note("calm")
	w.goHome()
	w.all("stop", "stopped")
	w.all("calm", "calm")
	w.leaks()
	for _, p := range w.started {
		if text := p.broken(); text != "" {
			w.problem("%s: %s", p.name, text)
		}
	}
	for f, times := range n.done {
		t.Logf("%s: %d", f, times)
	}
	for _, f := range faults() {
		if n.done[f] == 0 {
			t.Errorf("there was no %s", f)
		}
	}
	i.report(t)
	w.verdict(t)
}

// storm is the time for which the storm lasts: as long as is told, and on a busy
// machine until enough calls have returned.
func (w *world) storm(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		<-time.After(*stormFor)
		for end := time.Now().Add(3 * patience); time.Now().Before(end) && ctx.Err() == nil; <-time.After(time.Second) {
			if outcomes, err := w.outcomes(); err == nil && enough(outcomes) == nil {
				return
			}
		}
	}()
	return ctx
}

// outcomes are those of all calls.
func (w *world) outcomes() ([]outcome, error) {
	var all []outcome
	for _, c := range w.callers {
		some, err := readLines(filepath.Join(w.dir, "outcomes-"+c.name), outcomeOf)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// items are those of all streams, as servers made and callers took them.
func (w *world) items() (produced, received []item, err error) {
	if produced, err = readLines(w.orders().Produced, itemOf); err != nil {
		return nil, nil, err
	}
	for _, c := range w.callers {
		some, err := readLines(filepath.Join(w.dir, "received-"+c.name), itemOf)
		if err != nil {
			return nil, nil, err
		}
		received = append(received, some...)
	}
	return produced, received, nil
}

// enough is an error unless so many calls of each caller returned in the storm that
// something is proved.
func enough(outcomes []outcome) error {
	returned := map[string]int{}
	for _, o := range outcomes {
		if o.kind == outcomeOK && !strings.HasSuffix(o.caller, ".calm") {
			returned[o.caller]++
		}
	}
	var errs []error
	want := max(1, least*int(*stormFor/(20*time.Second)))
	for name, n := range returned {
		if n < want {
			errs = append(errs, fmt.Errorf("%d calls of caller %s returned, want %d at least", n, name, want))
		}
	}
	if len(returned) != callerCount {
		errs = append(errs, fmt.Errorf("calls of %d callers returned, want %d", len(returned), callerCount))
	}
	return errors.Join(errs...)
}

// all orders something of all callers.
func (w *world) all(order, want string) {
	var all sync.WaitGroup
	for _, c := range w.callers {
		all.Go(func() {
			if _, err := c.ask(order, want); err != nil {
				w.problem("caller %s: %v", c.name, err)
			}
		})
	}
	all.Wait()
}

// goHome puts the actors where they were at the beginning, so that callers need as
// many connections as they had.
func (w *world) goHome() {
	for i, s := range w.slots {
		name := actorName(i)
		w.mu.Lock()
		from := w.homes[name]
		w.homes[name] = s
		w.mu.Unlock()
		if from != s {
			from.drop(name)
			s.host(name)
		}
	}
}

// leaks looks for what is left, first in the callers, then in the servers without them.
func (w *world) leaks() {
	var all sync.WaitGroup
	for _, c := range w.callers {
		all.Go(func() {
			if err := c.settles(c.before); err != nil {
				w.problem("caller %s leaks: %v", c.name, err)
			}
			if _, err := c.ask("quit", ""); err == nil {
				w.problem("caller %s does not quit", c.name)
			}
			if err := c.leave(); err != nil {
				w.problem("caller %s: %v", c.name, err)
			}
		})
	}
	all.Wait()
	for i, s := range w.slots {
		s.drop(actorName(i))
		v := s.server()
		if err := v.settles(v.before); err != nil {
			w.problem("server %s leaks: %v", v.attempt, err)
		}
		s.drain()
	}
}

// verdict compares what was executed with what was reported.
func (w *world) verdict(t *testing.T) {
	t.Helper()
	executions, err := readLines(filepath.Join(w.dir, "executed"), executionOf)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := w.outcomes()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls, %d executions, outcomes %v", len(outcomes), len(executions), tally(outcomes))
	produced, received, err := w.items()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d streams: %d items produced, %d received", streamsOf(outcomes), len(produced), len(received))
	pickles := 0
	for _, o := range outcomes {
		if o.pickled && o.kind == outcomeOK {
			pickles++
		}
	}
	t.Logf("%d calls and streams with values of own classes", pickles)
	if proven := w.identity != "" && w.python != ""; proven != (pickles > 0) {
		w.problem("%d pickles were carried, and peers have proven their namespace: %t", pickles, proven)
	}
	wrong := slices.Concat(judge(executions, outcomes), gaps(outcomes), judgeStreams(executions, outcomes, produced, received))
	if len(wrong) > 50 {
		wrong = wrong[:50]
	}
	for _, problem := range append(w.problems, wrong...) {
		t.Error(problem)
	}
	if err := enough(outcomes); err != nil {
		t.Error(err)
	}
}
