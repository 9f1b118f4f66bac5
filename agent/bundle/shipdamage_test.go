package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestShipRefusesWhatChangesMeanwhile(t *testing.T) {
	write := func(name string, size int) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), noise(123, size), 0o600) }
	}
	for _, test := range []struct {
		name   string
		before bool // it is shipped; else while it is
		edit   func(dir string) error
	}{
		{"a file changed since", true, write("pkg6/file097.py", 100)},
		{"a file changes", false, write("pkg6/file097.py", 5000)},
		{"a file more at the end", true, write("zzz.py", 200<<10)},
		{"less at the end", true, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "pkg6")) }},
	} {
		for _, measuredBefore := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, measured %t", test.name, measuredBefore), func(t *testing.T) {
				l := newLedger(storetest.NewMemory())
				p := project(t, sources(t, 120))
				want := p.Bundle
				if !measuredBefore {
					p.Bundle.Parts = nil
				}
				var once sync.Once
				edit := func() {
					if err := test.edit(p.Dir); err != nil {
						t.Error(err)
					}
				}
				if test.before {
					edit()
				} else {
					l.Before = func(op storetest.Op, _ string) error {
						if op == storetest.OpUpload {
							once.Do(edit)
						}
						return nil
					}
				}
				err := Shipper{Store: l, Workers: 1, packer: tiny()}.Ship(t.Context(), p)
				shorter := err != nil && strings.Contains(err.Error(), "it became shorter")
				if !errors.Is(err, errChanged) && !shorter {
					t.Errorf("got %v, want %v", err, errChanged)
				}
				if found, err := l.List(t.Context(), store.BundleKey(want.Sum)); err != nil || len(found) != 0 {
					t.Errorf("the bundle is visible: %v, %v", found, err)
				}
			})
		}
	}
}

// Who measured must have measured all of it.
func TestShipRefusesAnotherManifest(t *testing.T) {
	dir := sources(t, 120)
	parts := project(t, dir).Bundle.Parts
	for name, edit := range map[string]func() []Part{
		"more":          func() []Part { return append(slices.Clone(parts), Part{Sum: strings.Repeat("0", 64), Size: 1}) },
		"less":          func() []Part { return parts[:len(parts)-1] },
		"another order": func() []Part { return slices.Concat(parts[1:], parts[:1]) },
	} {
		l := newLedger(storetest.NewMemory())
		p := Project{Dir: dir, Bundle: Manifest{Sum: strings.Repeat("1", 64), Parts: edit()}}
		if err := (Shipper{Store: l, packer: tiny()}).Ship(t.Context(), p); !errors.Is(err, errChanged) {
			t.Errorf("%s: got %v, want %v", name, err, errChanged)
		}
		if puts := l.made(storetest.OpPut); len(puts) != 0 {
			t.Errorf("%s: it wrote %q", name, puts)
		}
	}
}

func TestShipRepairsWhatIsMissing(t *testing.T) {
	remove := func(part int) func(*testing.T, store.Store, Project) {
		return func(t *testing.T, s store.Store, p Project) {
			if err := s.Delete(t.Context(), store.BundleKey(p.Bundle.Parts[part].Sum)); err != nil {
				t.Fatal(err)
			}
		}
	}
	index := func(data string) func(*testing.T, store.Store, Project) {
		return func(t *testing.T, s store.Store, p Project) {
			if _, err := s.Put(t.Context(), indexKey(p.Bundle.Sum), []byte(data), store.Any); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name   string
		damage func(*testing.T, store.Store, Project)
		sends  int
	}{
		{"the first part", remove(0), 1},
		{"another part", remove(3), 1},
		{"the index is gone", func(t *testing.T, s store.Store, p Project) {
			if err := s.Delete(t.Context(), indexKey(p.Bundle.Sum)); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"the index is damaged", index("{"), 0},
		{"the index is empty", index(""), 0},
		{"the index is another bundle's", index(`{"format": 1, "sha256": "x", "parts": [{"sha256": "y", "size": 1}]}`), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLedger(storetest.NewMemory())
			p := project(t, sources(t, 120))
			ship(t, l, p)
			test.damage(t, l.Store, p)
			l.made(storetest.OpUpload)
			ship(t, l, p)
			if sent := l.made(storetest.OpUpload); len(sent) != test.sends {
				t.Errorf("sent %d parts, want %d", len(sent), test.sends)
			}
			wantFetched(t, l, p)
		})
	}
}

func TestShipNamesADamagedPart(t *testing.T) {
	s := storetest.NewMemory()
	p := project(t, sources(t, 120))
	key := store.BundleKey(p.Bundle.Parts[2].Sum)
	if _, err := s.Put(t.Context(), key, []byte("short"), store.Absent); err != nil {
		t.Fatal(err)
	}
	err := Shipper{Store: s, packer: tiny()}.Ship(t.Context(), p)
	for _, want := range []string{"memory/" + key, "it has 5 bytes", "delete it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to contain %q", err, want)
		}
	}
}
