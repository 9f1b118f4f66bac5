package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type note struct{ N int }

func TestRecordKeepsTheLastWholeVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	var got note
	if err := Read(path, &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing record reads as %v", err)
	}
	if err := Reserve(path); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a reserved record reads as %v", err)
	}
	for n := 1; n <= 5; n++ {
		if err := Write(path, note{n}); err != nil {
			t.Fatal(err)
		}
		if err := Reserve(path); err != nil {
			t.Fatal(err)
		}
		if err := Read(path, &got); err != nil || got.N != n {
			t.Fatalf("read %+v, %v; want %d", got, err, n)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole) != slotCount*slotSize {
		t.Errorf("a record has %d bytes", len(whole))
	}
	// The version that was being written when the power went is not whole.
	at := strings.Index(string(whole), `"N":5`)
	for _, cut := range []int{0, at / slotSize * slotSize, at, at + 4} {
		torn := append([]byte(nil), whole...)
		for i := cut; i < (at/slotSize+1)*slotSize; i++ {
			torn[i] = 0
		}
		if cut == 0 { // both are gone
			for i := range torn {
				torn[i] = 0
			}
		}
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		err := Read(path, &got)
		if cut == 0 {
			if !errors.Is(err, errDamaged) {
				t.Errorf("a record of zeros reads as %+v, %v", got, err)
			}
			continue
		}
		if err != nil || got.N != 4 {
			t.Errorf("torn at %d it reads %+v, %v; want the version before", cut, got, err)
		}
	}
	for i := range whole { // each flipped bit is noticed
		flipped := append([]byte(nil), whole...)
		flipped[i] ^= 1
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Read(path, &got); err == nil && got.N != 5 && got.N != 4 {
			t.Fatalf("with byte %d flipped it reads %+v", i, got)
		}
	}
}

func TestRecordOfAnOlderAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	if err := WriteJSON(path, note{7}); err != nil {
		t.Fatal(err)
	}
	var got note
	if err := Read(path, &got); err != nil || got.N != 7 {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := Write(path, note{8}); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, &got); err != nil || got.N != 8 {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := Write(path, strings.Repeat("x", slotSize)); !errors.Is(err, errTooLarge) {
		t.Errorf("too large a value: %v", err)
	}
	if err := Read(path, &got); err != nil || got.N != 8 {
		t.Errorf("afterwards it reads %+v, %v", got, err)
	}
}
