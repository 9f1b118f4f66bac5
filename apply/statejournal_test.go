package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// withJournal puts a new state with a journal of few slots into a store, as large ones have.
func withJournal(t *testing.T, s store.Store) {
	t.Helper()
	data, err := state.Encode(state.Document{Lineage: "abcdefghijkl", Serial: 1, Nonce: "first", Storage: state.Storage{Journal: &state.Journal{ID: "j", Slots: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s store.Store) *state.Document {
	t.Helper()
	doc, _, err := apply.LoadState(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Steps on a state with a journal converge, and what is read is what was saved.
func TestStepsWithAJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		withJournal(t, w)
		s := newStepper(t, w.config())
		accept(t, s, jobs(40))
		converge(t, s)
		for i := range 12 { // three turns of the slots
			time.Sleep(apply.SaveInterval)
			next := s.Document().Clone()
			next.LocalPlace = fmt.Sprint("place ", i)
			if err := s.Accept(t.Context(), next); err != nil {
				t.Fatal(err)
			}
		}
		s.Drain(t.Context())
		if got := load(t, w); got.LocalPlace != "place 11" || len(got.Jobs) != 40 || got.Serial < 13 {
			t.Errorf("got %q, %d jobs, serial %d; want the last of all saves", got.LocalPlace, len(got.Jobs), got.Serial)
		}
		next := newStepper(t, w.config())
		converge(t, next)
		if len(w.created) != 40 {
			t.Errorf("created %d slices, want 40, each once", len(w.created))
		}
	})
}

// The first save of a new leader fences the one before, however many saves follow.
func TestAFormerLeaderOfAJournalIsFenced(t *testing.T) {
	for _, saves := range []int{1, 3, 4, 5, 9} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			withJournal(t, w)
			former := newStepper(t, w.config())
			accept(t, former, jobs(1))
			leader := newStepper(t, w.config())
			for i := range saves {
				accept(t, leader, jobs(2+i))
				time.Sleep(apply.SaveInterval)
			}
			leader.Drain(t.Context())
			if err := former.Accept(t.Context(), former.Document().Clone()); !errors.Is(err, apply.ErrStateMoved) {
				t.Errorf("after %d saves of the leader: got %v, want ErrStateMoved", saves, err)
			}
			if got := load(t, w); len(got.Desired.Jobs) != saves+1 {
				t.Errorf("got %d jobs, want the leader's %d", len(got.Desired.Jobs), saves+1)
			}
		})
	}
}

// An object of a journal that is damaged or missing is an error that names it and the remedy.
func TestADamagedJournalIsNoState(t *testing.T) {
	for _, saves := range []int{3, 7} { // in the first turn of the slots, and later
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			withJournal(t, w)
			s := newStepper(t, w.config())
			for i := range saves {
				next := s.Document().Clone()
				next.LocalPlace = fmt.Sprint("place ", i)
				if err := s.Accept(t.Context(), next); err != nil {
					t.Fatal(err)
				}
				time.Sleep(apply.SaveInterval)
			}
			s.Drain(t.Context())
			taken := load(t, w)
			snapshot := stateIn(t, w)
			first := int(snapshot.Journal.Entries) % 4
			if taken.Serial == snapshot.Serial {
				t.Fatal("there are no entries; the test shows nothing")
			}
			key := store.JournalKey(first)
			object, err := w.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			wrong := []byte(strings.Replace(string(object.Data), "place", "plaice", 1))
			if _, err := w.Put(t.Context(), key, wrong, store.Any); err != nil {
				t.Fatal(err)
			}
			if _, _, err := apply.LoadState(t.Context(), w); !errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "fray state rollback") {
				t.Errorf("got %v, want ErrDamaged of %s with a remedy", err, key)
			}
			if err := w.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if _, _, err := apply.LoadState(t.Context(), w); saves > 4 && (!errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), key+" in ")) {
				t.Errorf("got %v, want ErrDamaged of the missing %s", err, key)
			}
		})
	}
}

// A state becomes one with a journal when it is large, and a save is small from then on.
func TestALargeStateGetsAJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := newStepper(t, w.config())
		desired := jobs(1)
		for i := range 3000 {
			j := desired.Jobs[0]
			j.Addr = schema.Address{Kind: schema.KindJob, Name: "many", Key: schema.IntKey(i)}
			j.Command = []schema.Text{schema.Plain(strings.Repeat("x", 400))}
			desired.Jobs = append(desired.Jobs, j)
		}
		accept(t, s, desired)
		time.Sleep(apply.SaveInterval)
		next := s.Document().Clone()
		next.LocalPlace = "elsewhere"
		if err := s.Accept(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		listed, err := w.List(t.Context(), store.JournalPrefix)
		if err != nil || len(listed) != 1 || listed[0].Size > 1000 {
			t.Errorf("got %+v, %v, want one small entry", listed, err)
		}
		if got := load(t, w); got.LocalPlace != "elsewhere" || len(got.Desired.Jobs) != 3001 {
			t.Errorf("got %q with %d jobs, want elsewhere with 3001", got.LocalPlace, len(got.Desired.Jobs))
		}
	})
}

// A stepper that follows a reader has the newest state, however much was saved since that was
// read, and fences the former leader as any other.
func TestAStepperAfterAReader(t *testing.T) {
	for _, saves := range []int{0, 1, 2, 3, 4, 9} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			withJournal(t, w)
			former := newStepper(t, w.config())
			accept(t, former, jobs(1))
			reader := apply.NewStateReader(w)
			if _, _, err := reader.Read(t.Context()); err != nil || !reader.Journaled() {
				t.Fatalf("read %v, with a journal: %t", err, reader.Journaled())
			}
			for i := range saves {
				time.Sleep(apply.SaveInterval)
				accept(t, former, jobs(2+i))
			}
			leader, err := apply.NewAfter(t.Context(), w.config(), apply.Known{State: reader})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(leader.Document().Desired.Jobs); got != 1+saves {
				t.Errorf("%d saves: got %d jobs, want %d", saves, got, 1+saves)
			}
			for i := range 6 { // more than there are slots
				accept(t, leader, jobs(20+i))
				time.Sleep(apply.SaveInterval)
			}
			leader.Drain(t.Context())
			if err := former.Accept(t.Context(), former.Document().Clone()); !errors.Is(err, apply.ErrStateMoved) {
				t.Errorf("%d saves: the former leader's save: %v, want %v", saves, err, apply.ErrStateMoved)
			}
			if got := load(t, w); len(got.Desired.Jobs) != 25 {
				t.Errorf("%d saves: %d jobs are in the store, want 25", saves, len(got.Desired.Jobs))
			}
		})
	}
}

// paced is a store that takes one write a second of an object.
type paced struct{ store.Store }

func (paced) WriteInterval() time.Duration { return time.Second }

// A save that a deletion waits for does not wait for the second that one object takes where
// it writes another object than the last one did.
func TestUrgentSavesOfAJournal(t *testing.T) {
	for journaled, most := range map[bool]time.Duration{true: 600 * time.Millisecond, false: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			if journaled {
				withJournal(t, w)
			}
			cfg := w.config()
			cfg.Store, cfg.Eager = paced{w}, true
			s := newStepper(t, cfg)
			accept(t, s, jobs(2))
			converge(t, s)
			time.Sleep(apply.SaveInterval)
			began := time.Now()
			accept(t, s, schema.Desired{})
			converge(t, s)
			if took := time.Since(began); took > most || !journaled && took < apply.SaveInterval {
				t.Errorf("with a journal %t: all was gone after %s, want at most %s, and %s without one", journaled, took, most, apply.SaveInterval)
			}
		})
	}
}
