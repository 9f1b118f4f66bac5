package state

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
)

// TestFailedOfFormerDocuments: a former program recorded only the text of a call that
// failed; what is read of it says by its kind that it failed.
func TestFailedOfFormerDocuments(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	former := Document{Lineage: "l", Slices: map[string]*Slice{
		"a": {Spec: schema.SliceSpec{Name: "a"}, AskedAt: at, Error: "no room"},
		"b": {Spec: schema.SliceSpec{Name: "b"}, AskedAt: at, Failed: schema.ErrorCapacity, Error: "no room"},
		"c": {Spec: schema.SliceSpec{Name: "c"}, AskedAt: at},
	}}
	data, err := Encode(former)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]schema.ErrorKind{"a": schema.ErrorUnavailable, "b": schema.ErrorCapacity, "c": ""} {
		if got := read.Slices[name].Failed; got != want {
			t.Errorf("slice %s: got %q, want %q", name, got, want)
		}
	}
}
