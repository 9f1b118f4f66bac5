package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/clusterapi"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// actor is a registration of task 0 of attempt 1 of job a, with changes.
func actor(name string, change func(*Endpoint)) Endpoint {
	e := Endpoint{Namespace: "rl", Name: name, Address: "10.0.0.1:1", JobID: "a", Attempt: 1}
	if change != nil {
		change(&e)
	}
	return e
}

func idsOf(endpoints []*Endpoint) []string {
	ids := []string{}
	for _, e := range endpoints {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestRegister registers what stands before the last one, under the ids "1", "2" …
// and looks what became of the last.
func TestRegister(t *testing.T) {
	elsewhere := func(e *Endpoint) { e.Address = "10.0.0.1:2" }
	unique := func(e *Endpoint) { e.Unique = true }
	tests := []struct {
		name   string
		actors []Endpoint
		want   []string // ids of name x in rl afterwards, the oldest first
		err    error
	}{
		{"one", []Endpoint{actor("x", nil)}, []string{"1"}, nil},
		{"a pool shares a name", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { e.Task = 1 })}, []string{"1", "2"}, nil},
		{"two of one task", []Endpoint{actor("x", nil), actor("x", elsewhere)}, []string{"1", "2"}, nil},
		{"again at the same address", []Endpoint{actor("x", nil), actor("x", nil)}, []string{"2"}, nil},
		{"a restarted task", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { e.Attempt, e.Address = 2, "10.0.0.9:9" })}, []string{"2"}, nil},
		{"a restarted task leaves another's", []Endpoint{actor("x", func(e *Endpoint) { e.Task = 1 }), actor("x", func(e *Endpoint) { e.Attempt = 2 })}, []string{"1", "2"}, nil},
		{"another name", []Endpoint{actor("x", nil), actor("y", nil)}, []string{"1"}, nil},
		{"the same name in another namespace", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { e.Namespace, e.JobID, e.Unique = "ops", "b", true })}, []string{"1"}, nil},
		{"unique, and taken", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { e.JobID, e.Unique = "b", true })}, []string{"1"}, ErrNameTaken},
		{"unique, and taken by another task", []Endpoint{actor("x", unique), actor("x", func(e *Endpoint) { e.Task, e.Unique = 1, true })}, []string{"1"}, ErrNameTaken},
		{"not unique, and taken by one that is", []Endpoint{actor("x", unique), actor("x", func(e *Endpoint) { e.JobID = "b" })}, []string{"1"}, ErrNameTaken},
		{"unique, by the same task elsewhere", []Endpoint{actor("x", unique), actor("x", func(e *Endpoint) { elsewhere(e); unique(e) })}, []string{"2"}, nil},
		{"the same request", []Endpoint{actor("x", func(e *Endpoint) { e.Request = "r" }), actor("x", func(e *Endpoint) { elsewhere(e); e.Request = "r" })}, []string{"1"}, nil},
		{"another job's request of the same id", []Endpoint{actor("x", func(e *Endpoint) { e.Request = "r" }), actor("x", func(e *Endpoint) { e.JobID, e.Request = "b", "r" })}, []string{"1", "2"}, nil},
		{"renewed elsewhere", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { elsewhere(e); e.ID = "1" })}, []string{"1"}, nil},
		{"renewed by another job", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { e.JobID, e.ID = "b", "1" })}, []string{"1"}, ErrNotOwn},
		{"renewed under another name", []Endpoint{actor("x", nil), actor("y", func(e *Endpoint) { e.ID = "1" })}, []string{"1"}, errOtherActor},
		{"renewed by a later attempt", []Endpoint{actor("x", nil), actor("x", func(e *Endpoint) { e.Attempt, e.ID = 2, "1" })}, []string{"1"}, errIncarnation},
		{"renewed after it was forgotten", []Endpoint{actor("x", func(e *Endpoint) { e.ID = "7" })}, []string{"7"}, nil},
		{"renewed as unique beside another", []Endpoint{actor("x", nil), actor("x", elsewhere), actor("x", func(e *Endpoint) { e.ID, e.Unique = "1", true })}, []string{"1", "2"}, ErrNameTaken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := New(nil, noon)
			for i, in := range test.actors {
				e, d, err := r.Register(in, fmt.Sprint(i+1), noon.Add(time.Duration(i)*time.Second))
				last := i == len(test.actors)-1
				if !last && err != nil || last && !errors.Is(err, test.err) {
					t.Fatalf("registration %d: %v, want %v", i+1, err, test.err)
				}
				if err != nil && !d.Empty() {
					t.Errorf("a refused registration changed %+v", d)
				}
				if err == nil && e.Wire.GetActorId() != e.ID {
					t.Errorf("the endpoint is sent as %q, want %q", e.Wire.GetActorId(), e.ID)
				}
			}
			if got := idsOf(r.in("rl").byName["x"]); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if named := r.Named("rl", "x"); named[len(named)-1].ID != test.want[len(test.want)-1] {
				t.Errorf("the newest is %s, want %s", named[len(named)-1].ID, test.want[len(test.want)-1])
			}
		})
	}
}

// A restarted task's endpoint takes the old one's place in one change.
func TestReplacedInOneChange(t *testing.T) {
	r := New(nil, noon)
	w := NewWatcher("rl", "x", "", "")
	r.Watch(w)
	_, d, _ := r.Register(actor("x", nil), "1", noon)
	r.Publish(d)
	if _, err := w.Take(func() []*Endpoint { return r.Seen(w) }); err != nil {
		t.Fatal(err)
	}
	_, d, _ = r.Register(actor("x", func(e *Endpoint) { e.Attempt = 2 }), "2", noon)
	r.Publish(d)
	got, err := w.Take(func() []*Endpoint { return r.Seen(w) })
	if err != nil || got.GetReset_() || len(got.GetAdded()) != 1 || got.GetAdded()[0].GetActorId() != "2" || !slices.Equal(got.GetRemoved(), []string{"1"}) {
		t.Errorf("got %v, %v; want 2 added and 1 removed at once", got, err)
	}
}

func TestTooMany(t *testing.T) {
	r := New(nil, noon)
	for i := range maxEndpoints {
		if _, _, err := r.Register(actor(fmt.Sprint("x", i), nil), fmt.Sprint(i), noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := r.Register(actor("y", nil), "y", noon); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v, want %v", err, ErrTooMany)
	}
	if _, _, err := r.Register(actor("x1", nil), "z", noon); err != nil {
		t.Errorf("one that replaces another: %v", err)
	}
	if _, _, err := r.Register(actor("y", func(e *Endpoint) { e.JobID = "b" }), "y", noon); err != nil {
		t.Errorf("another job's: %v", err)
	}
}

func TestExpire(t *testing.T) {
	ttl := func(e *Endpoint) { e.TTL = 10 * time.Second }
	r := New(nil, noon)
	register := func(in Endpoint, id string, now time.Time) {
		t.Helper()
		if _, _, err := r.Register(in, id, now); err != nil {
			t.Fatal(err)
		}
	}
	register(actor("x", ttl), "1", noon)
	register(actor("y", ttl), "2", noon)
	register(actor("z", nil), "3", noon)
	version := r.Version()
	register(actor("x", func(e *Endpoint) { ttl(e); e.ID = "1" }), "", noon.Add(5*time.Second))
	if r.Version() != version {
		t.Error("giving an endpoint its time again is a write")
	}
	if d := r.Expire(noon.Add(9 * time.Second)); !d.Empty() {
		t.Errorf("after 9 s %v are gone", idsOf(d.removed))
	}
	if d := r.Expire(noon.Add(10 * time.Second)); !slices.Equal(idsOf(d.removed), []string{"2"}) {
		t.Errorf("after 10 s %v are gone, want 2", idsOf(d.removed))
	}
	if got, want := r.NextExpiry(), noon.Add(15*time.Second); !got.Equal(want) {
		t.Errorf("the next expires at %s, want %s", got, want)
	}

	t.Run("all its time again under a new leader", func(t *testing.T) {
		later := noon.Add(time.Hour)
		next := New(r.All(), later)
		if d := next.Expire(later.Add(9 * time.Second)); !d.Empty() {
			t.Errorf("after 9 s %v are gone", idsOf(d.removed))
		}
		if d := next.Expire(later.Add(10 * time.Second)); !slices.Equal(idsOf(d.removed), []string{"1"}) {
			t.Errorf("after 10 s %v are gone, want 1", idsOf(d.removed))
		}
	})
	t.Run("renewing for ever takes no room", func(t *testing.T) {
		for i := range 10 * maxStale {
			register(actor("x", func(e *Endpoint) { ttl(e); e.ID = "1" }), "", noon.Add(time.Duration(i)*time.Millisecond))
		}
		if got := len(r.expiries); got > 2*maxStale {
			t.Errorf("%d expiries are kept for 2 endpoints", got)
		}
	})
}

func TestNear(t *testing.T) {
	r := New(nil, noon)
	for i, name := range []string{"inference-0", "inference-1", "trainer", "replay/buffer"} {
		if _, _, err := r.Register(actor(name, nil), fmt.Sprint(i), noon); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		want []string
	}{
		{"inference-2", []string{"inference-0", "inference-1"}},
		{"traimer", []string{"trainer"}},
		{"replay/bufer", []string{"replay/buffer"}},
		{"zebra", nil},
	}
	for _, test := range tests {
		if got := r.Suggestions("rl", test.name); !slices.Equal(got, test.want) {
			t.Errorf("near %s: %q, want %q", test.name, got, test.want)
		}
	}
	if got := r.Suggestions("ops", "trainer"); got != nil {
		t.Errorf("another namespace's names are shown: %q", got)
	}
}

// A watcher that does not read is sent everything anew, and keeps little.
func TestSlowWatcher(t *testing.T) {
	r := New(nil, noon)
	w := NewWatcher("rl", "", "", "")
	r.Watch(w)
	all := func() []*Endpoint { return r.Seen(w) }
	if _, err := w.Take(all); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxPending {
		_, d, err := r.Register(actor(fmt.Sprint("x", i), nil), fmt.Sprint(i), noon)
		if err != nil {
			t.Fatal(err)
		}
		r.Publish(d)
	}
	if len(w.pending) > maxPending {
		t.Errorf("%d changes are kept, want at most %d", len(w.pending), maxPending)
	}
	got, err := w.Take(all)
	if err != nil || !got.GetReset_() || len(got.GetAdded()) != 2*maxPending {
		t.Errorf("got %d with reset %v, %v; want all %d anew", len(got.GetAdded()), got.GetReset_(), err, 2*maxPending)
	}
	if got, err := w.Take(all); got != nil || err != nil {
		t.Errorf("and then %v, %v; want nothing", got, err)
	}
}

// mirror is what a client makes of what a watcher sends.
type mirror struct {
	watcher *Watcher
	known   map[string]*clusterapi.ActorEndpoint
}

func (m *mirror) read(t *rapid.T, r *Registry) {
	got, err := m.watcher.Take(func() []*Endpoint { return r.Seen(m.watcher) })
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		return
	}
	if got.GetReset_() {
		clear(m.known)
	}
	for _, id := range got.GetRemoved() {
		delete(m.known, id)
	}
	for _, e := range got.GetAdded() {
		m.known[e.GetActorId()] = e
	}
}

// Whatever happens in whatever order, a registry is what a plain list of
// endpoints would be, and so is what watchers make of their messages.
func TestRegistryIsAPlainList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := New(nil, noon), noon
		plain := map[string]*Endpoint{}
		var mirrors []*mirror
		for _, w := range []*Watcher{NewWatcher("a", "x", "", ""), NewWatcher("a", "", "", ""), NewWatcher("a", "", "x", ""), NewWatcher("b", "", "xy", "")} {
			r.Watch(w)
			mirrors = append(mirrors, &mirror{w, map[string]*clusterapi.ActorEndpoint{}})
		}
		note := func(d Delta) {
			r.Publish(d)
			for _, e := range d.removed {
				delete(plain, e.ID)
			}
			for _, e := range d.added {
				plain[e.ID] = e
			}
		}
		count := 0
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				job := rapid.SampledFrom([]string{"j1", "j2", "j3"}).Draw(t, "job")
				in := Endpoint{
					Namespace: map[string]string{"j1": "a", "j2": "a", "j3": "b"}[job], JobID: job,
					Name:    rapid.SampledFrom([]string{"x", "xy", "xyz", "y"}).Draw(t, "name"),
					Address: rapid.SampledFrom([]string{"h:1", "h:2"}).Draw(t, "address"),
					Task:    rapid.IntRange(0, 2).Draw(t, "task"), Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"),
					Unique:  rapid.IntRange(0, 9).Draw(t, "unique") == 0,
					Request: rapid.SampledFrom([]string{"", "", "r1", "r2"}).Draw(t, "request"),
					TTL:     time.Duration(rapid.IntRange(0, 3).Draw(t, "ttl")) * time.Second,
				}
				if ids := slices.Sorted(maps.Keys(plain)); len(ids) > 0 && rapid.Bool().Draw(t, "again") {
					known := plain[rapid.SampledFrom(ids).Draw(t, "id")]
					in.ID, in.Namespace, in.JobID, in.Name, in.Task, in.Attempt = known.ID, known.Namespace, known.JobID, known.Name, known.Task, known.Attempt
				}
				count++
				e, d, err := r.Register(in, fmt.Sprint("e", count), now)
				note(d)
				if err == nil {
					plain[e.ID] = e
				}
			},
			"unregister": func(t *rapid.T) {
				ids := append(slices.Sorted(maps.Keys(plain)), "none")
				d, _ := r.Unregister(rapid.SampledFrom(ids).Draw(t, "id"), "")
				note(d)
			},
			"prune": func(t *rapid.T) {
				job, attempt := rapid.SampledFrom([]string{"j1", "j2", "j3"}).Draw(t, "job"), rapid.IntRange(1, 2).Draw(t, "attempt")
				note(r.Prune(func(e *Endpoint) bool { return e.JobID != job || e.Attempt > attempt }))
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
				note(r.Expire(now))
				for _, e := range plain {
					if e.TTL > 0 && !e.Expires.After(now) {
						t.Fatalf("%s should have expired at %s, now is %s", e.ID, e.Expires, now)
					}
				}
			},
			"read": func(t *rapid.T) { rapid.SampledFrom(mirrors).Draw(t, "watcher").read(t, r) },
			"": func(t *rapid.T) {
				if got, want := idsOf(r.All()), len(plain); len(got) != want {
					t.Fatalf("the registry has %q, want the %d of %v", got, want, slices.Sorted(maps.Keys(plain)))
				}
			},
		})
		for _, m := range mirrors {
			m.read(t, r)
			want := map[string]*clusterapi.ActorEndpoint{}
			for id, e := range plain {
				if w := m.watcher; e.Namespace == w.Namespace && (w.name == "" && strings.HasPrefix(e.Name, w.prefix) || e.Name == w.name) {
					want[id] = e.Wire
				}
			}
			if !maps.Equal(m.known, want) {
				t.Fatalf("watcher of %q %q: knows %v\nwant %v", m.watcher.name, m.watcher.prefix, slices.Sorted(maps.Keys(m.known)), slices.Sorted(maps.Keys(want)))
			}
			for name, list := range r.in(m.watcher.Namespace).byName {
				if !slices.IsSortedFunc(list, byAge) || len(list) == 0 {
					t.Fatalf("%s: %q are not by age", name, idsOf(list))
				}
			}
			r.Unwatch(m.watcher)
		}
		note(r.Prune(func(*Endpoint) bool { return false }))
		if len(r.spaces)+len(r.byJob)+len(r.byRequest)+len(r.byID) != 0 {
			t.Fatalf("of an empty registry there is left: %+v", r)
		}
	})
}
