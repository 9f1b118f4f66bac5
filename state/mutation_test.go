package state_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Whatever changes in a document, in any of its fields and however deep, is in the entry: what is
// replayed is the document. Of what is not changed the documents share the memory, as those of the
// planner do.
func TestAnyChangeIsInTheEntry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := drawDocument(t)
		first.Journal = nil
		read := roundTripped(t, first)
		base := state.NewBaseline(&first)
		var entries []*state.Entry
		former := []*state.Document{&first}
		for i := range rapid.IntRange(1, 5).Draw(t, "saves") {
			next := base.Document()
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				next = mutated(t, next)
			}
			if rapid.IntRange(0, 3).Draw(t, "what was is again") == 0 {
				was := rapid.SampledFrom(former).Draw(t, "former")
				next.Jobs, next.Slices, next.Metering = was.Jobs, was.Slices, was.Metering
			}
			former = append(former, next)
			next.Nonce = fmt.Sprint("n", i)
			changes, err := base.Changes(next)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := base.JobChanges(next).Set, len(changes.Jobs); len(got) != want {
				t.Fatalf("%d jobs changed, and %d are in the entry", len(got), want)
			}
			entries = append(entries, entryOf(t, base.Document(), next, changes))
			base.Advance(next)
		}
		got, _, err := state.Replayed(&read, entries)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := textOf(t, *got), textOf(t, roundTripped(t, *base.Document())); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// mutated is a document with one field changed that is not about which document it is.
func mutated(t *rapid.T, was *state.Document) *state.Document {
	next := *was
	v := reflect.ValueOf(&next).Elem()
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous && !slices.Contains([]string{"FormatVersion", "FrayVersion", "Lineage", "Serial", "Epoch", "Nonce", "Journal"}, f.Name) {
			fields = append(fields, f)
		}
	}
	member := rapid.SampledFrom(fields).Draw(t, "member").Index
	switch rapid.IntRange(0, 8).Draw(t, "large one") { // these are found by their memory
	case 0, 1:
		change(t, reflect.ValueOf(&next.Jobs).Elem())
	case 2, 3:
		change(t, reflect.ValueOf(&next.Slices).Elem())
	case 4, 5:
		if next.Metering != nil {
			m := *next.Metering
			change(t, reflect.ValueOf(&m.Open).Elem())
			next.Metering = &m
		}
	default:
		change(t, v.FieldByIndex(member))
	}
	// As a document must be.
	declared := map[schema.Address]bool{}
	for i := range next.Desired.Jobs {
		addr := next.Desired.Jobs[i].Addr
		if declared[addr] {
			next.Desired.Jobs = was.Desired.Jobs
			break
		}
		declared[addr] = true
	}
	for addr, r := range next.Resources {
		if r.Namespace == nil || r.Reservation != nil || r.Group != nil || r.Notification != nil || addr.IsZero() {
			next.Resources = was.Resources
		}
	}
	for name, s := range next.Slices {
		if s == nil || s.Spec.Name != name {
			next.Slices = was.Slices
		}
	}
	for addr, j := range next.Jobs {
		if j == nil || j.Spec == nil || addr.IsZero() {
			next.Jobs = was.Jobs
		}
	}
	return &next
}

// change changes something within a value, which is copied on the way there. An element of a map
// may also go, come, or take the place of another one.
func change(t *rapid.T, v reflect.Value) {
	switch v.Addr().Interface().(type) {
	case *schema.Address, *schema.Text, *time.Time:
		draw(t, v)
		return
	}
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		kept := v.Elem()
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().Set(kept)
		change(t, v.Elem())
	case v.Kind() == reflect.Struct && v.NumField() > 0:
		change(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")))
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() != reflect.Uint8 && rapid.IntRange(0, 3).Draw(t, "element") > 0:
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		v.Set(copied)
		change(t, v.Index(rapid.IntRange(0, v.Len()-1).Draw(t, "index")))
	case v.Kind() == reflect.Map && v.Len() > 0:
		changeMap(t, v)
	default:
		draw(t, v)
	}
}

func changeMap(t *rapid.T, v reflect.Value) {
	copied := reflect.MakeMap(v.Type())
	keys := slices.Sorted(maps.Keys(keysOf(v)))
	for _, key := range keysOf(v) {
		copied.SetMapIndex(key, v.MapIndex(key))
	}
	key := keysOf(v)[rapid.SampledFrom(keys).Draw(t, "key")]
	v.Set(copied)
	other := reflect.New(v.Type().Key()).Elem()
	draw(t, other)
	switch rapid.SampledFrom([]string{"change", "change", "remove", "copy", "move", "share"}).Draw(t, "what") {
	case "change":
		element := reflect.New(v.Type().Elem()).Elem()
		element.Set(v.MapIndex(key))
		change(t, element)
		v.SetMapIndex(key, element)
	case "remove":
		v.SetMapIndex(key, reflect.Value{})
	case "copy": // the same value in other memory
		element := reflect.New(v.Type().Elem()).Elem()
		element.Set(v.MapIndex(key))
		if element.Kind() == reflect.Pointer && !element.IsNil() {
			kept := element.Elem()
			element.Set(reflect.New(element.Type().Elem()))
			element.Elem().Set(kept)
		}
		v.SetMapIndex(key, element)
	case "move":
		v.SetMapIndex(other, v.MapIndex(key))
		v.SetMapIndex(key, reflect.Value{})
	case "share": // an element of two keys, or of another one's
		last := keysOf(v)[keys[len(keys)-1]]
		moved := v.MapIndex(last)
		v.SetMapIndex(last, v.MapIndex(key))
		v.SetMapIndex(key, moved)
	}
}

// keysOf are the keys of a map by their texts.
func keysOf(v reflect.Value) map[string]reflect.Value {
	keys := map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		keys[fmt.Sprintf("%#v", key.Interface())] = key
	}
	return keys
}
