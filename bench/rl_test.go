package main

import "testing"

// A short form of what the part "rl" measures: the measurements check by themselves that what was to happen did.
func TestRLIsMeasured(t *testing.T) {
	for name, size := range map[string]string{"WORKERS": "4", "MANY": "8", "POOLS": "2"} {
		t.Setenv("FRAY_BENCH_RL_"+name, size)
	}
	for _, test := range []struct {
		what string
		n    int
		kind rlJournal
	}{
		{oneRLPuts, 2000, rlSynced}, {oneRLPuts, 100, rlBare}, {oneRLMany, 3000, rlWritten}, {oneRLBatch, 2, rlNone}, {oneRLUnblock, 2, rlSynced},
	} {
		r, err := runRL(t.Context(), test.what, test.n, test.kind)
		if err != nil {
			t.Fatalf("%s, journal %s: %v", test.what, test.kind, err)
		}
		if r.Rate <= 0 && r.Took <= 0 {
			t.Errorf("%s: got %+v, want a rate or a time", test.what, r)
		}
		if r.Held > rlMemory {
			t.Errorf("%s: a pool has held %d bytes, want at most %d", test.what, r.Held, rlMemory)
		}
	}
}

func TestRLSizesAreNumbers(t *testing.T) {
	var sizes rlSizes
	if err := sizes.read(func(string) string { return "many" }); err == nil {
		t.Error("a size that is no number is accepted")
	}
	if err := sizes.read(func(string) string { return "" }); err != nil || sizes.workers != 64 {
		t.Errorf("sizes %+v, %v", sizes, err)
	}
}
