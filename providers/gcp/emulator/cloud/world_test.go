package cloud_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

const (
	zone    = "us-west4-a"
	project = "acme-research"
)

func start() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// fleet notes what is done to machines, and holds the model to its promises: in
// order, no machine switched on twice or off when it is off, and no lock held.
type fleet struct {
	cloud *cloud.Cloud
	clock *cloud.Virtual
	on    map[string]bool
	known map[string]bool
	trace []string
	wrong []string
}

var _ cloud.Hosts = (*fleet)(nil)

func (f *fleet) note(format string, args ...any) {
	f.trace = append(f.trace, f.clock.Now().Sub(start()).String()+" "+fmt.Sprintf(format, args...))
	if f.cloud != nil {
		f.cloud.All() // blocks for ever if the model's lock is held
	}
}

func (f *fleet) must(ok bool, what, id string) {
	if !ok {
		f.wrong = append(f.wrong, what+" "+id)
	}
}

func (f *fleet) Start(m cloud.Machine) {
	f.must(!f.on[m.ID], "started while on:", m.ID)
	f.on[m.ID], f.known[m.ID] = true, true
	f.note("start %s %s %d/%d", m.ID, m.Name, m.Worker, m.Workers)
}

func (f *fleet) Notice(id string, event cloud.Event) {
	f.must(f.on[id], "notified while off:", id)
	f.note("notice %s %s", id, event)
}

func (f *fleet) Stop(id string) {
	f.must(f.on[id], "stopped while off:", id)
	f.on[id] = false
	f.note("stop %s", id)
}

func (f *fleet) Remove(id string) {
	f.must(!f.on[id], "removed while on:", id)
	delete(f.on, id)
	delete(f.known, id)
	f.note("remove %s", id)
}

// world is a model on a virtual clock with its fleet.
type world struct {
	t     testing.TB
	cloud *cloud.Cloud
	clock *cloud.Virtual
	fleet *fleet
}

func newWorld(t testing.TB, scenario cloud.Scenario) *world {
	clock := cloud.NewVirtual(start())
	f := &fleet{clock: clock, on: map[string]bool{}, known: map[string]bool{}}
	w := &world{t: t, clock: clock, fleet: f, cloud: cloud.New(cloud.Config{Scenario: scenario, Clock: clock, Hosts: f})}
	f.cloud = w.cloud
	return w
}

func node(name string) cloud.Key {
	return cloud.Key{Project: project, Zone: zone, Kind: cloud.KindNode, Name: name}
}

func queued(name string) cloud.Key {
	return cloud.Key{Project: project, Zone: zone, Kind: cloud.KindQueued, Name: name}
}

// spot is a v5litepod-16.
func spot(name string) cloud.Spec {
	return cloud.Spec{
		Key: node(name), Type: "v5litepod", Units: 16, Machines: 4, AcceleratorType: "v5litepod-16", Tier: cloud.TierSpot,
	}
}

// allocate asks for a group that nothing is wrong with.
func (w *world) allocate(s cloud.Spec) cloud.Operation {
	w.t.Helper()
	op, err := w.cloud.Allocate(s)
	if err != nil {
		w.t.Fatalf("allocate %s: %v", s.Name, err)
	}
	return op
}

// made is a group that is ready.
func (w *world) made(s cloud.Spec) *cloud.Group {
	w.t.Helper()
	w.allocate(s)
	w.clock.Advance(time.Minute)
	return w.want(s.Key, cloud.StateReady)
}

func (w *world) want(k cloud.Key, state cloud.State) *cloud.Group {
	w.t.Helper()
	g, ok := w.cloud.Group(k)
	if !ok {
		w.t.Fatalf("%s is gone, want %s", k.Name, state)
	}
	if g.State != state {
		w.t.Fatalf("%s is %s, want %s", k.Name, g.State, state)
	}
	return g
}

func (w *world) gone(k cloud.Key) {
	w.t.Helper()
	if g, ok := w.cloud.Group(k); ok {
		w.t.Fatalf("%s is %s, want it gone", k.Name, g.State)
	}
}

// ended is an operation that has ended, with the reason why it failed or "".
func (w *world) ended(op cloud.Operation, reason cloud.Reason) cloud.Operation {
	w.t.Helper()
	now, ok := w.cloud.Operation(op.Name)
	if !ok || !now.Done() {
		w.t.Fatalf("operation %s of %s: known %v, done %v", op.Verb, op.Target, ok, now.Done())
	}
	got := cloud.Reason("")
	if now.Err != nil {
		got = now.Err.Reason
	}
	if got != reason {
		w.t.Fatalf("operation %s of %s ended with %q (%v), want %q", op.Verb, op.Target, got, now.Err, reason)
	}
	return now
}

// saw reports whether the fleet's trace has the words in this order, each in a line
// of its own.
func (w *world) saw(words ...string) {
	w.t.Helper()
	rest := w.fleet.trace
	for _, word := range words {
		i := slices.IndexFunc(rest, func(line string) bool { return strings.Contains(line, word) })
		if i < 0 {
			w.t.Errorf("the machines saw no %q (in this order %q):\n%s", word, words, strings.Join(w.fleet.trace, "\n"))
			return
		}
		rest = rest[i+1:]
	}
}

func (w *world) audit() {
	w.t.Helper()
	if err := w.cloud.Audit(); err != nil {
		w.t.Error(err)
	}
	if len(w.fleet.wrong) > 0 {
		w.t.Errorf("done to machines: %q", w.fleet.wrong)
	}
}
