package state_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/checksum"
)

// A document is the one before with the changes that its entry has, for documents of any
// content, which share some of their parts.
func TestReplayedIsWhatWasSaved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		saved := drawDocument(t)
		saved.Journal = nil
		read := roundTripped(t, saved)
		base := state.NewBaseline(&saved)
		var entries []*state.Entry
		for i := range rapid.IntRange(1, 3).Draw(t, "saves") {
			next := successor(t, base.Document())
			next.Nonce, next.Journal = fmt.Sprint("n", i), nil
			changes, err := base.Changes(next)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, entryOf(t, base.Document(), next, changes))
			base.Advance(next)
		}
		got, _, err := state.Replayed(&read, entries)
		if err != nil {
			t.Fatal(err)
		}
		want := roundTripped(t, *base.Document())
		if got, want := textOf(t, *got), textOf(t, want); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// successor is a document that shares some of its parts with the one before.
func successor(t *rapid.T, was *state.Document) *state.Document {
	other := drawDocument(t)
	next := &other
	if rapid.Bool().Draw(t, "same members") {
		next = was.Clone()
	}
	next.Lineage = was.Lineage
	next.Jobs = mixed(t, was.Jobs, other.Jobs)
	next.Slices = mixed(t, was.Slices, other.Slices)
	switch rapid.IntRange(0, 3).Draw(t, "desired") {
	case 0:
		next.Desired = was.Desired
	case 1:
		next.Desired = other.Desired
	default: // in order, as the language has it
		next.Desired.Jobs = nil
		for _, addr := range slices.SortedFunc(maps.Keys(next.Jobs), schema.Address.Compare) {
			if rapid.Bool().Draw(t, "is desired") {
				next.Desired.Jobs = append(next.Desired.Jobs, *next.Jobs[addr].Spec)
			}
		}
	}
	if m := next.Metering; m != nil && was.Metering != nil {
		kept := *m
		kept.Open = mixed(t, was.Metering.Open, m.Open)
		next.Metering = &kept
	}
	return next
}

// mixed has elements of both maps.
func mixed[K comparable, V any](t *rapid.T, was, other map[K]*V) map[K]*V {
	switch rapid.IntRange(0, 2).Draw(t, "of which map") {
	case 0:
		return was
	case 1:
		return other
	}
	all := maps.Clone(was)
	if all == nil {
		all = map[K]*V{}
	}
	for key, v := range other {
		if rapid.Bool().Draw(t, "taken") {
			all[key] = v
		}
	}
	for key := range was {
		if rapid.Bool().Draw(t, "removed") {
			delete(all, key)
		}
	}
	return all
}

func roundTripped(t rapid.TB, d state.Document) state.Document {
	t.Helper()
	data, err := state.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	read, err := state.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func textOf(t rapid.TB, d state.Document) string {
	t.Helper()
	text, err := state.Text(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// entryOf is the entry of a save, as it is read.
func entryOf(t rapid.TB, was, next *state.Document, changes state.Changes) *state.Entry {
	t.Helper()
	data, err := state.EncodeEntry(&state.Entry{
		FrayVersion: next.FrayVersion, Journal: "j", Number: 1, Lineage: next.Lineage, After: was.Nonce,
		Serial: next.Serial, Epoch: next.Epoch, Nonce: next.Nonce, Changes: changes,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := state.DecodeEntry(data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// changedOnce is a document, its successor, and the entry between them.
func changedOnce(t *testing.T) (was, next state.Document, e *state.Entry) {
	t.Helper()
	was = sample(t)
	next = *was.Clone()
	addr := was.Desired.Jobs[0].Addr
	j := *was.Jobs[addr]
	j.Status = schema.JobSucceeded
	next.Jobs[addr] = &j
	next.Serial, next.Nonce = was.Serial+1, "O"
	changes, err := state.NewBaseline(&was).Changes(&next)
	if err != nil {
		t.Fatal(err)
	}
	return was, next, entryOf(t, &was, &next, changes)
}

// An entry has what changed and no more.
func TestAnEntryHasWhatChanged(t *testing.T) {
	_, next, e := changedOnce(t)
	if len(e.Jobs) != 1 || e.Members != nil || e.Maps != nil || e.Desired != nil || e.Slices != nil || e.Metering != nil {
		t.Errorf("got %+v, want one job", e.Changes)
	}
	for addr, j := range e.Jobs {
		if j.Spec != nil || j.SpecOf != "former" || next.Jobs[addr].Status != j.Status {
			t.Errorf("got %s with spec %v of %q, want %s and its spec left out", j.Status, j.Spec, j.SpecOf, next.Jobs[addr].Status)
		}
	}
}

// No entry is applied to another document than the one that it changes.
func TestAnEntryFollowsItsPredecessorOnly(t *testing.T) {
	was, _, e := changedOnce(t)
	for what, change := range map[string]func(d *state.Document){
		"another save":    func(d *state.Document) { d.Nonce = "another" },
		"another lineage": func(d *state.Document) { d.Lineage = "another" },
	} {
		d := was
		change(&d)
		if _, done, err := state.Replayed(&d, []*state.Entry{e}); !errors.Is(err, state.ErrDamaged) || done != 0 {
			t.Errorf("%s: got %v after %d entries, want ErrDamaged after none", what, err, done)
		}
	}
}

// Every byte of an entry that changed is noticed, and so is an end that is missing.
func TestADamagedEntryIsNoticed(t *testing.T) {
	_, _, e := changedOnce(t)
	for _, text := range []string{"a job", strings.Repeat("a large one ", 1<<13)} { // the second is compressed
		e.FrayVersion = text
		data, err := state.EncodeEntry(e)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(data)-1; i += 7 { // the last is the line's end
			changed := slices.Clone(data)
			changed[i] ^= 0x20
			if _, err := state.DecodeEntry(changed); !errors.Is(err, state.ErrDamaged) && !errors.Is(err, state.ErrNewer) {
				t.Errorf("byte %d of %d changed: got %v, want ErrDamaged", i, len(data), err)
			}
			if _, err := state.DecodeEntry(data[:i]); !errors.Is(err, state.ErrDamaged) {
				t.Errorf("%d bytes of %d: got %v, want ErrDamaged", i, len(data), err)
			}
		}
	}
}

// Documents and entries with members that this fray does not know are of a newer one: so
// is a snapshot with a journal for a fray that knows none.
func TestUnknownMembersAreANewerFrays(t *testing.T) {
	_, _, e := changedOnce(t)
	data, err := state.EncodeEntry(e)
	if err != nil {
		t.Fatal(err)
	}
	for old, changed := range map[string]string{`"number":1`: `"numbers":1`, `"format_version":4`: `"format_version":5`} {
		if _, err := state.DecodeEntry(checked(t, strings.Replace(string(data), old, changed, 1))); !errors.Is(err, state.ErrNewer) {
			t.Errorf("%s: got %v, want ErrNewer", changed, err)
		}
	}
	d := sample(t)
	d.Journal = &state.Journal{ID: "j", Slots: 4}
	text := strings.Replace(textOf(t, d), `"journal"`, `"journal_of_later"`, 1)
	if _, err := state.Decode(checked(t, text)); !errors.Is(err, state.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
}

// checked is a text with a new checksum.
func checked(t *testing.T, text string) []byte {
	t.Helper()
	object, _ := checksum.Cut([]byte(text))
	data, err := checksum.Append(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
