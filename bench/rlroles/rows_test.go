package rlroles

import "testing"

// A short form: the measurements check by themselves that what was to happen did.
func TestRolesAreMeasured(t *testing.T) {
	sizes := Sizes{Puts: 3000, Workers: 4, Many: 8, Pools: 2, Turns: 2}
	for _, test := range []struct {
		what Measurement
		kind Journal
	}{{Puts, Synced}, {Puts, Bare}, {Many, Written}, {Batch, None}, {Unblock, Synced}} {
		r, err := Measure(t.Context(), test.what, test.kind, sizes)
		if err != nil {
			t.Fatalf("%s, journal %s: %v", test.what, test.kind, err)
		}
		if r.Rate <= 0 && r.Took <= 0 {
			t.Errorf("%s: got %+v, want a rate or a time", test.what, r)
		}
		if r.Held > maxBytes {
			t.Errorf("%s: a pool has held %d bytes, want at most %d", test.what, r.Held, maxBytes)
		}
	}
}

func TestRowsHaveEachMeasurement(t *testing.T) {
	measured := map[Measurement]bool{}
	rows, err := Rows(Sizes{Workers: 1}, func(m Measurement, _ Journal) (Result, error) {
		measured[m] = true
		return Result{Rate: 7}, nil
	})
	if err != nil || len(rows) != 5 || len(measured) != 4 || rows[0].Measured != "7/s" {
		t.Errorf("rows %q of %v, %v", rows, measured, err)
	}
}

func TestSizesAreNumbers(t *testing.T) {
	if _, err := SizesOf(func(string) string { return "many" }); err == nil {
		t.Error("a size that is no number is accepted")
	}
	if sizes, err := SizesOf(func(string) string { return "" }); err != nil || sizes.Workers != 64 {
		t.Errorf("sizes %+v, %v", sizes, err)
	}
}
