package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/checksum"
)

// Version 1 is read as the present one is; this is what reading other ones will be like.
func TestDecodeUpgradesOlderVersions(t *testing.T) {
	rename := func(from, to string) func(parts) error {
		return func(fields parts) error {
			value, ok := fields[from]
			if !ok {
				return fmt.Errorf("there is no %s", from)
			}
			delete(fields, from)
			fields[to] = value
			return nil
		}
	}
	third := codec{version: 3, edited: true, upgrades: []upgrade{
		{from: 1, to: 2, change: rename("number", "count")},
		{from: 2, to: 3, change: rename("count", "serial")},
	}}
	tests := []struct{ name, data, fails string }{
		{"two back", `{"number":7,"format_version":1,"lineage":"l"}`, ""},
		{"one back", `{"format_version":2,"lineage":"l","count":7}`, ""},
		{"this one", `{"format_version":3,"lineage":"l","serial":7}`, ""},
		{"an upgrade that fails", `{"format_version":1,"lineage":"l"}`, "upgrade from format_version 1: there is no number"},
		{"damaged and old", `{"format_version":1,"lineage":`, "ends too early"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, _, err := third.decode([]byte(test.data))
			if test.fails != "" {
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want ErrDamaged that says %q", err, test.fails)
				}
				return
			}
			if err != nil || d.Serial != 7 || d.FormatVersion != 3 || d.Lineage != "l" {
				t.Errorf("got %+v, %v, want serial 7, version 3", d, err)
			}
		})
	}
	if _, _, err := third.decode([]byte(`{"format_version":4}`)); !errors.Is(err, ErrNewer) {
		t.Errorf("one ahead: got %v, want ErrNewer", err)
	}
}

// TestDecodeRefusesUnreleasedVersions: their form left out what specs repeat, so that
// reading them as they are would lose it.
func TestDecodeRefusesUnreleasedVersions(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		data, err := checksum.Append([]byte(`{"format_version":` + version + `,"lineage":"l"}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(data); !errors.Is(err, ErrDamaged) || !errors.Is(err, errUnreleased) {
			t.Errorf("version %s: got %v, want %v", version, err, errUnreleased)
		}
	}
}
