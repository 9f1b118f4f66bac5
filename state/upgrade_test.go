package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Versions so far are read alike; this is what reading other ones will be like.
func TestDecodeUpgradesOlderVersions(t *testing.T) {
	rename := func(from, to string) upgrade {
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
	third := codec{version: 3, edited: true, upgrades: []upgrade{rename("number", "count"), rename("count", "serial")}}
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
	if len(upgrades()) != FormatVersion-1 {
		t.Errorf("there are %d upgrades to version %d, want one for each step", len(upgrades()), FormatVersion)
	}
}
