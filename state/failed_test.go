package state

import (
	"testing"

	"github.com/fray-ml/fray/schema"
)

// TestFailedOfVersion1: a program that wrote version 1 recorded only the text of a call
// that failed; the kind says so too once it is read.
func TestFailedOfVersion1(t *testing.T) {
	read, err := Decode([]byte(`{"format_version":1,"lineage":"l","slices":{
		"a":{"spec":{"name":"a"},"asked_at":"2026-01-02T03:04:05Z","error":"no room"},
		"b":{"spec":{"name":"b"},"asked_at":"2026-01-02T03:04:05Z","failed":"capacity","error":"no room"},
		"c":{"spec":{"name":"c"},"asked_at":"2026-01-02T03:04:05Z"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]schema.ErrorKind{"a": schema.ErrorUnavailable, "b": schema.ErrorCapacity, "c": ""} {
		if got := read.Slices[name].Failed; got != want {
			t.Errorf("slice %s: got %q, want %q", name, got, want)
		}
	}
}
