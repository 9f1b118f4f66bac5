package state_test

import (
	"runtime"
	"testing"

	"github.com/fray-ml/fray/state"
)

// A document is decoded without lists of its jobs that are copied as they grow: that took
// 11 KB for each task.
func TestDecodeAllocatesLittle(t *testing.T) {
	const tasks, most = 2_000, 8_000 // most bytes for each task
	data, err := state.Encode(large(t, tasks))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Decode(data); err != nil { // what the JSON package keeps of types
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := state.Decode(data)
	runtime.ReadMemStats(&after)
	if err != nil || len(d.Jobs) != tasks || len(d.Slices) != tasks || len(d.Desired.Jobs) != tasks {
		t.Fatalf("got %d jobs, %d slices and %d declared jobs (%v), want %d of each", len(d.Jobs), len(d.Slices), len(d.Desired.Jobs), err, tasks)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / tasks; each > most {
		t.Errorf("decoding took %d bytes for each task, want at most %d", each, most)
	}
}
