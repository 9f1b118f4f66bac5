package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Silence is measured by the observer's own looking: a suspended observer does
// not find all hosts silent, one that looked on finds exactly those that are.
func TestSilenceIsWhatTheObserverSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		report := func(seq uint64) {
			data, err := json.Marshal(state.HostReport{Slice: "a", Seq: seq, At: time.Now().Add(-time.Hour)}) // its clock is behind
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), store.HostKey("a", 0), data, store.Any); err != nil {
				t.Fatal(err)
			}
		}
		o := &apply.Observer{Store: s}
		silent := func() time.Duration {
			t.Helper()
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			return obs.Hosts["a"][0].SilentFor(obs.Monitored)
		}
		report(1)
		if got := silent(); got != 0 {
			t.Errorf("first look: silent for %s, want 0", got)
		}
		time.Sleep(time.Hour) // suspended
		if got := silent(); got > 10*time.Second {
			t.Errorf("after an hour without looking: silent for %s, want a moment", got)
		}
		for range 60 {
			time.Sleep(time.Second)
			silent()
		}
		if got := silent(); got < time.Minute {
			t.Errorf("after looking on for a minute: silent for %s, want at least that", got)
		}
		report(2)
		if got := silent(); got != 0 {
			t.Errorf("after a new report: silent for %s, want 0", got)
		}
	})
}

// What hosts could not say, since the mailbox was down, is not held against them.
func TestSilenceWhileTheMailboxIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(storetest.Op, string) error {
			if down {
				return errAsked
			}
			return nil
		}}
		data, err := json.Marshal(state.HostReport{Slice: "a", Seq: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.HostKey("a", 0), data, store.Any); err != nil {
			t.Fatal(err)
		}
		o := &apply.Observer{Store: s}
		if _, err := o.Observe(t.Context(), "stack"); err != nil {
			t.Fatal(err)
		}
		down = true
		for range 60 {
			time.Sleep(time.Second)
			if _, err := o.Observe(t.Context(), "stack"); !errors.Is(err, errAsked) {
				t.Fatalf("got %v, want %v", err, errAsked)
			}
		}
		down = false
		time.Sleep(time.Second)
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil {
			t.Fatal(err)
		}
		if got := obs.Hosts["a"][0].SilentFor(obs.Monitored); got > 5*time.Second {
			t.Errorf("after a minute in which no host could write: silent for %s, want a moment", got)
		}
	})
}

// asked counts what an observer asks of its store; reads take a second, and
// some fail.
type asked struct {
	storetest.Faulty
	lists, reads atomic.Int64
	fail         atomic.Value // the key whose reads fail, a string
}

var errAsked = errors.New("the store is down")

func newAsked() *asked {
	a := &asked{}
	a.fail.Store("")
	a.Faulty = storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, key string) error {
		switch op {
		case storetest.OpList:
			a.lists.Add(1)
		case storetest.OpGet:
			a.reads.Add(1)
			time.Sleep(time.Second)
			if key == a.fail.Load() {
				return errAsked
			}
		case storetest.OpPut, storetest.OpDelete, storetest.OpUpload, storetest.OpOpen:
		}
		return nil
	}}
	return a
}

func (a *asked) report(t *testing.T, slice string, seq uint64) {
	t.Helper()
	a.write(t, store.HostKey(slice, 0), state.HostReport{Slice: slice, Seq: seq})
}

func (a *asked) write(t *testing.T, key string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Put(t.Context(), key, data, store.Any); err != nil {
		t.Fatal(err)
	}
}

// look observes and says what it took: lists, reads, and the slices that changed.
func (a *asked) look(t *testing.T, o *apply.Observer) string {
	t.Helper()
	lists, reads := a.lists.Load(), a.reads.Load()
	if _, err := o.Observe(t.Context(), "stack"); err != nil {
		t.Fatal(err)
	}
	changed := slices.Sorted(maps.Keys(o.Changed()))
	return fmt.Sprintf("%d list, %d reads, changed %v", a.lists.Load()-lists, a.reads.Load()-reads, changed)
}

func TestObservingIsOneListAndTheChangedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsked()
		for _, slice := range []string{"a", "b", "c"} {
			a.report(t, slice, 1)
			a.write(t, store.AssignKey(slice), state.Assignment{Slice: slice})
		}
		a.write(t, store.BundleKey("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"), "not of the mailbox")
		a.write(t, store.HandoverKey, "nor this")
		o := &apply.Observer{Store: a}
		steps := []struct {
			name string
			do   func()
			want string
		}{
			{"first", func() {}, "1 list, 6 reads, changed [a b c]"},
			{"nothing happened", func() {}, "1 list, 0 reads, changed []"},
			{"a report", func() { a.report(t, "b", 2) }, "1 list, 1 reads, changed [b]"},
			{"nothing happened since", func() {}, "1 list, 0 reads, changed []"},
			{"an assignment and a new host", func() {
				a.write(t, store.AssignKey("c"), state.Assignment{Slice: "c", Generation: 2})
				a.write(t, store.HostKey("a", 1), state.HostReport{Slice: "a", Host: 1})
			}, "1 list, 2 reads, changed [a c]"},
			{"a slice that went", func() {
				for _, key := range []string{store.AssignKey("b"), store.HostKey("b", 0)} {
					if err := a.Delete(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
			}, "1 list, 0 reads, changed [b]"},
		}
		for _, step := range steps {
			step.do()
			if got := a.look(t, o); got != step.want {
				t.Errorf("%s: got %s, want %s", step.name, got, step.want)
			}
		}
	})
}

func TestObservingReadsSixteenObjectsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsked()
		for i := range 20 * 16 {
			a.report(t, fmt.Sprint(i), 1)
		}
		began := time.Now()
		a.look(t, &apply.Observer{Store: a})
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("20*16 reads of a second took %v, want 20s", took)
		}
	})
}

// What changed before a look that failed is told by the next that succeeds.
func TestObservingAgainAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsked()
		for i := range 40 {
			a.report(t, fmt.Sprintf("s%02d", i), 1)
		}
		a.write(t, store.AssignKey("x"), state.Assignment{Slice: "x"})
		o := &apply.Observer{Store: a}
		a.look(t, o)
		a.write(t, store.AssignKey("x"), state.Assignment{Slice: "x", Generation: 2})
		a.report(t, "s07", 2)
		for _, key := range []string{store.AssignKey("x"), store.HostKey("s07", 0)} {
			a.fail.Store(key)
			if _, err := o.Observe(t.Context(), "stack"); !errors.Is(err, errAsked) {
				t.Errorf("%s cannot be read: got %v, want %v", key, err, errAsked)
			}
		}
		a.fail.Store("")
		if _, err := o.Observe(t.Context(), "stack"); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(o.Changed())); !slices.Equal(got, []string{"s07", "x"}) {
			t.Errorf("changed: got %v, want s07 and x", got)
		}
		a.write(t, store.AssignKey("x"), "no assignment")
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil || obs.Damaged["x"] == "" || obs.Assignments["x"].Run != nil || obs.Assignments["x"].Generation != 0 {
			t.Errorf("got %+v, damaged %v, %v, want nothing of it but that it is damaged", obs.Assignments["x"], obs.Damaged, err)
		}
		a.write(t, store.AssignKey("x"), state.Assignment{Slice: "x", Generation: 3})
		if obs, err = o.Observe(t.Context(), "stack"); err != nil || len(obs.Damaged) > 0 || obs.Assignments["x"].Generation != 3 {
			t.Errorf("got %+v, damaged %v, %v, want generation 3", obs.Assignments["x"], obs.Damaged, err)
		}
	})
}

// An object that is deleted between list and read is not there, and no error.
func TestObservingWhatIsBeingDeleted(t *testing.T) {
	s := storetest.NewMemory()
	for i := range 20 {
		data := fmt.Appendf(nil, `{"slice":"a","host":%d}`, i)
		if _, err := s.Put(t.Context(), store.HostKey("a", i), data, store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	o := &apply.Observer{Store: &storetest.Faulty{Store: s, After: func(op storetest.Op, _ string) error {
		if op == storetest.OpList {
			return s.Delete(t.Context(), store.HostKey("a", 7))
		}
		return nil
	}}}
	obs, err := o.Observe(t.Context(), "stack")
	if err != nil || len(obs.Hosts["a"]) != 19 {
		t.Errorf("got %d hosts, %v, want 19", len(obs.Hosts["a"]), err)
	}
}

// slowProvider lists slices of one name, each list taking its time.
type slowProvider struct {
	providers.Provider
	takes time.Duration
	pace  time.Duration
	err   error
	lists atomic.Int32 // begun
}

func (p *slowProvider) Pace() time.Duration { return p.pace }

func (p *slowProvider) Inventory(ctx context.Context, _ string) (schema.Inventory, error) {
	name := fmt.Sprintf("list-%d", p.lists.Add(1))
	select {
	case <-time.After(p.takes):
		return schema.Inventory{Slices: []schema.SliceStatus{{Spec: schema.SliceSpec{Name: name}}}}, p.err
	case <-ctx.Done():
		return schema.Inventory{}, context.Cause(ctx)
	}
}

// A provider that is slow to list does not block a step: the last whole list stands until
// the next one is there, and nothing stands when that takes for ever.
func TestSlowListsHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowProvider{takes: 3 * time.Second}
		o := &apply.Observer{
			Store: storetest.NewMemory(), Patience: 500 * time.Millisecond,
			Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: slow},
		}
		look := func() (took time.Duration, saw string) {
			t.Helper()
			began := time.Now()
			obs, err := o.Observe(t.Context(), "stack")
			if err != nil {
				t.Fatal(err)
			}
			if why := obs.Unreachable[schema.ProviderGCP].Text; why != "" {
				return time.Since(began), why
			}
			return time.Since(began), obs.Inventories[schema.ProviderGCP].Slices[0].Spec.Name
		}
		for _, want := range []struct {
			took time.Duration
			saw  string
		}{
			{3 * time.Second, "list-1"}, // nothing can be said before
			{500 * time.Millisecond, "list-1"},
			{500 * time.Millisecond, "list-1"},
		} {
			if took, saw := look(); took != want.took || saw != want.saw {
				t.Errorf("got %s after %s, want %s after %s", saw, took, want.saw, want.took)
			}
		}
		time.Sleep(2 * time.Second)
		if took, saw := look(); took != 0 || saw != "list-2" {
			t.Errorf("got %s after %s, want list-2 at once", saw, took)
		}
		slow.takes = time.Hour
		time.Sleep(time.Second)
		look()
		time.Sleep(45 * time.Second)
		if _, saw := look(); !strings.Contains(saw, "not answered for") {
			t.Errorf("got %q of a list that never comes, want that nothing can be said", saw)
		}
		if got := slow.lists.Load(); got != 3 {
			t.Errorf("%d lists were begun, want 3: one at a time", got)
		}
	})
}

// A step waits for a list as long as it is told to: the last one stands after that.
func TestStepsWaitForListsAsLongAsConfigured(t *testing.T) {
	for name, c := range map[string]struct{ patience, takes time.Duration }{
		"by default": {0, 500 * time.Millisecond},
		"an hour":    {time.Hour, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepper(t, apply.Config{
					Store: storetest.NewMemory(), Epoch: 1, Valid: func() error { return nil }, Patience: c.patience,
					Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: &slowProvider{takes: 3 * time.Second}},
				})
				for _, want := range []time.Duration{3 * time.Second, c.takes} { // the first list is had in any case
					began := time.Now()
					if _, err := s.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took != want {
						t.Errorf("a step took %s, want %s", took, want)
					}
				}
				time.Sleep(3 * time.Second) // the last list ends
			})
		})
	}
}

// A provider that has a pace is not listed more often than that, but at once after a
// list that failed.
func TestListsKeepThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowProvider{pace: 5 * time.Second}
		o := &apply.Observer{Store: storetest.NewMemory(), Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: p}}
		look := func() {
			t.Helper()
			if _, err := o.Observe(t.Context(), "stack"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for range 11 {
			look()
		}
		if got := p.lists.Load(); got != 3 {
			t.Errorf("%d lists in 11 seconds, want 3", got)
		}
		p.err = errors.New("503")
		for range 10 {
			look()
		}
		if got := p.lists.Load(); got < 8 {
			t.Errorf("%d lists after failures, want one a look", got)
		}
	})
}
