package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// shipped is a large project in a store, and that store.
func shipped(t *testing.T) (Project, *ledger) {
	t.Helper()
	l := newLedger(storetest.NewMemory())
	p := project(t, sources(t, 120))
	ship(t, l, p)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = nil
	return p, l
}

// damaging is a store whose blobs come out changed, as often as change says.
type damaging struct {
	store.Store
	mu     sync.Mutex
	change map[string][]func([]byte) (data []byte, then error) // by key, for the next times
}

func (d *damaging) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := d.Store.Open(ctx, key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || len(d.change[key]) == 0 {
		return r, err
	}
	defer r.Close()
	change := d.change[key][0]
	d.change[key] = d.change[key][1:]
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	data, then := change(data)
	return io.NopCloser(io.MultiReader(bytes.NewReader(data), ends{then})), nil
}

// ends ends with an error, or like anything else.
type ends struct{ err error }

func (e ends) Read([]byte) (int, error) {
	if e.err == nil {
		return 0, io.EOF
	}
	return 0, e.err
}

// wantNothingElse checks that every file is one of the project's, or its
// beginning.
func wantNothingElse(t *testing.T, dir, project string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join(project, name))
		if !bytes.HasPrefix(want, got) {
			t.Errorf("%s was unpacked with %d bytes that are not the project's", name, len(got))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFetchRepairsWhatArrivesDamaged(t *testing.T) {
	broken := errors.New("the connection broke")
	for name, change := range map[string]func([]byte) ([]byte, error){
		"a bit":          func(b []byte) ([]byte, error) { b[len(b)/2] ^= 1; return b, nil },
		"too short":      func(b []byte) ([]byte, error) { return b[:len(b)/2], nil },
		"too long":       func(b []byte) ([]byte, error) { return append(b, 0), nil },
		"breaks off":     func(b []byte) ([]byte, error) { return b[:len(b)/2], broken },
		"breaks at once": func([]byte) ([]byte, error) { return nil, broken },
		"breaks at end":  func(b []byte) ([]byte, error) { return b, broken },
	} {
		for what, dir := range map[string]string{"of several parts": sources(t, 120), "of one": sources(t, 5)} {
			t.Run(name+", "+what, func(t *testing.T) {
				l := newLedger(storetest.NewMemory())
				p := project(t, dir)
				ship(t, l, p)
				last := p.Bundle.Parts[len(p.Bundle.Parts)-1].Sum
				d := &damaging{Store: l, change: map[string][]func([]byte) ([]byte, error){store.BundleKey(last): {change}}}
				wantFetched(t, d, p)
				if opens := l.made(storetest.OpOpen); len(opens) != len(p.Bundle.Parts)+1 {
					t.Errorf("opened %d times, want once for each of %d parts and once more", len(opens), len(p.Bundle.Parts))
				}

				d.change[store.BundleKey(last)] = slices.Repeat([]func([]byte) ([]byte, error){change}, 2)
				l.made(storetest.OpOpen)
				to := t.TempDir()
				keep := t.TempDir()
				err := Fetcher{Store: d, Keep: keep, Workers: 1}.Fetch(t.Context(), p.Bundle.Sum, to)
				for _, want := range []string{"memory/" + store.BundleKey(last), "damaged", "delete it"} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("damaged twice: got %v, want it to contain %q", err, want)
					}
				}
				if opens := l.made(storetest.OpOpen); len(opens) != len(p.Bundle.Parts)+1 {
					t.Errorf("damaged twice: opened %d times, want %d", len(opens), len(p.Bundle.Parts)+1)
				}
				wantNothingElse(t, to, p.Dir)
				if kept, err := os.ReadDir(keep); err != nil || len(kept) != len(p.Bundle.Parts)-1 {
					t.Errorf("kept %v, %v, want all parts but the damaged one", kept, err)
				}
			})
		}
	}
}

func TestFetchUsesWhatIsThere(t *testing.T) {
	p, l := shipped(t)
	keep := t.TempDir()
	damaged := map[int]func([]byte) []byte{
		2: func(b []byte) []byte { b[7] ^= 1; return b },
		4: func(b []byte) []byte { return b[:len(b)-1] },
		5: func([]byte) []byte { return nil },
	}
	for i, part := range p.Bundle.Parts[:8] {
		object, err := l.Store.Get(t.Context(), store.BundleKey(part.Sum))
		if err != nil {
			t.Fatal(err)
		}
		if damage := damaged[i]; damage != nil {
			object.Data = damage(object.Data)
		}
		if err := os.WriteFile(filepath.Join(keep, part.Sum), object.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	to := t.TempDir()
	if err := (Fetcher{Store: l, Keep: keep}).Fetch(t.Context(), p.Bundle.Sum, to); err != nil {
		t.Fatal(err)
	}
	wantSame(t, to, p.Dir)
	want := map[string]bool{}
	for i, part := range p.Bundle.Parts {
		if i >= 8 || damaged[i] != nil {
			want["open "+store.BundleKey(part.Sum)] = true
		}
	}
	got := map[string]bool{}
	for _, call := range l.made(storetest.OpOpen) {
		got[call] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("fetched %d parts, want the %d that were not there or damaged", len(got), len(want))
	}
}

func TestFetchGoesOnAfterAKill(t *testing.T) {
	d, err := store.CreateDir(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	p := project(t, sources(t, 120))
	ship(t, d, p)
	keep, to := filepath.Join(t.TempDir(), "keep"), t.TempDir()
	killed(t, "fetch", d.Location(), p.Bundle.Sum, keep, to)
	kept := 0
	for _, part := range p.Bundle.Parts {
		if _, err := os.Stat(filepath.Join(keep, part.Sum)); err == nil {
			kept++
		}
	}
	if kept == 0 || kept > 4 { // of the five requests, one was for the whole
		t.Errorf("it kept %d parts, want 1 to 4", kept)
	}
	l := newLedger(d)
	to = t.TempDir()
	if err := (Fetcher{Store: l, Keep: keep}).Fetch(t.Context(), p.Bundle.Sum, to); err != nil {
		t.Fatal(err)
	}
	wantSame(t, to, p.Dir)
	if opens := l.made(storetest.OpOpen); len(opens) != len(p.Bundle.Parts)-kept {
		t.Errorf("opened %d times with %d of %d parts there", len(opens), kept, len(p.Bundle.Parts))
	}
}

func TestFetchKeepsWhatItHasWhenItFails(t *testing.T) {
	p, l := shipped(t)
	lost := errors.New("the host is told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	last := "open " + store.BundleKey(p.Bundle.Parts[7].Sum)
	l.Before = func(op storetest.Op, key string) error {
		if string(op)+" "+key == last {
			cancel(lost)
		}
		return nil
	}
	f := Fetcher{Store: l, Keep: filepath.Join(t.TempDir(), "keep"), Workers: 1}
	left := filepath.Join(f.Keep, ".partial") // by a fetch that was killed
	if err := errors.Join(os.Mkdir(f.Keep, 0o700), os.WriteFile(left, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := f.Fetch(ctx, p.Bundle.Sum, to); !errors.Is(err, lost) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, lost)
	}
	if entries, err := os.ReadDir(f.Keep); err != nil || len(entries) != 7 {
		t.Errorf("kept %d files, %v, want the 7 parts that came", len(entries), err)
	}
	l.Before = nil
	l.made(storetest.OpOpen)
	to = t.TempDir()
	if err := f.Fetch(t.Context(), p.Bundle.Sum, to); err != nil {
		t.Fatal(err)
	}
	if opens := l.made(storetest.OpOpen); len(opens) != len(p.Bundle.Parts)-7 {
		t.Errorf("then opened %d parts, want %d", len(opens), len(p.Bundle.Parts)-7)
	}
	wantSame(t, to, p.Dir)
}

func TestFetchTakesTurns(t *testing.T) {
	for workers, at := range map[int]int{0: 4, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			p, l := shipped(t)
			l.Before = func(op storetest.Op, key string) error {
				if op == storetest.OpOpen && key != store.BundleKey(p.Bundle.Sum) {
					time.Sleep(time.Second)
				}
				return nil
			}
			start := time.Now()
			f := Fetcher{Store: l, Keep: t.TempDir(), Workers: workers}
			if err := f.Fetch(t.Context(), p.Bundle.Sum, t.TempDir()); err != nil {
				t.Fatal(err)
			}
			want := time.Duration((len(p.Bundle.Parts)+at-1)/at) * time.Second
			if took := time.Since(start); took != want {
				t.Errorf("%d workers: %d parts took %v, want %v", workers, len(p.Bundle.Parts), took, want)
			}
		})
	}
}

// A large bundle in one piece was shipped by an older fray.
func TestFetchTakesAWhole(t *testing.T) {
	s := storetest.NewMemory()
	dir := sources(t, 120)
	var blob bytes.Buffer
	if _, _, err := tiny().pack(dir, func(_ Part, frame []byte) error { blob.Write(frame); return nil }); err != nil {
		t.Fatal(err)
	}
	p := project(t, dir)
	if err := s.Upload(t.Context(), store.BundleKey(p.Bundle.Sum), &blob); err != nil {
		t.Fatal(err)
	}
	wantFetched(t, s, p)
}

func TestFetchSaysWhatIsWrong(t *testing.T) {
	edit := func(change func(*index)) func(*testing.T, store.Store, Project) {
		return func(t *testing.T, s store.Store, p Project) {
			x := index{Format: indexFormat, Manifest: p.Bundle}
			x.Parts = slices.Clone(x.Parts)
			change(&x)
			data, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), indexKey(p.Bundle.Sum), data, store.Any); err != nil {
				t.Fatal(err)
			}
		}
	}
	const indexIs = ".parts is of no use: "
	for _, test := range []struct {
		name   string
		damage func(*testing.T, store.Store, Project)
		want   []string
		mixed  bool // what is unpacked before that is found out need not be the project's
	}{
		{"nothing is there", func(t *testing.T, s store.Store, p Project) {
			if err := s.Delete(t.Context(), indexKey(p.Bundle.Sum)); err != nil {
				t.Fatal(err)
			}
		}, []string{"it is not in the store memory", "apply again"}, false},
		{"a part is not there", func(t *testing.T, s store.Store, p Project) {
			if err := s.Delete(t.Context(), store.BundleKey(p.Bundle.Parts[2].Sum)); err != nil {
				t.Fatal(err)
			}
		}, []string{"part 3 of ", "object not found", "apply again"}, false},
		{"a part is another's content", func(t *testing.T, s store.Store, p Project) {
			if _, err := s.Put(t.Context(), store.BundleKey(p.Bundle.Parts[2].Sum), []byte("x"), store.Any); err != nil {
				t.Fatal(err)
			}
		}, []string{"part 3 of ", "of 1 bytes", "delete it"}, false},
		{"a newer format", edit(func(x *index) { x.Format = 2 }), []string{indexIs, "it has format 2", "update fray"}, false},
		{"no format", edit(func(x *index) { x.Format = 0 }), []string{indexIs, "no index"}, false},
		{"no parts", edit(func(x *index) { x.Parts = nil }), []string{indexIs, "no index"}, false},
		{"of another bundle", edit(func(x *index) { x.Sum = x.Parts[0].Sum }), []string{indexIs, "it is the index of"}, false},
		{"a name that leads elsewhere", edit(func(x *index) { x.Parts[1].Sum = "../../../etc/passwd" }), []string{indexIs, "part 2", "passwd"}, false},
		{"a name in capitals", edit(func(x *index) { x.Parts[1].Sum = strings.ToUpper(x.Parts[1].Sum) }), []string{indexIs, "part 2"}, false},
		{"a size that is none", edit(func(x *index) { x.Parts[1].Size = -1 }), []string{indexIs, "-1 bytes"}, false},
		{"sizes that are too much", edit(func(x *index) { x.Parts[1].Size = 3 << 30 }), []string{indexIs, "more bytes than a bundle may"}, false},
		{"sizes that overflow", edit(func(x *index) {
			x.Parts[1].Size, x.Parts[2].Size = 1<<62, 1<<62
		}), []string{indexIs, "bytes"}, false},
		{"another order", edit(func(x *index) { x.Parts[1], x.Parts[2] = x.Parts[2], x.Parts[1] }),
			[]string{"each of its parts is whole", ".parts is wrong", "delete it"}, true},
		{"one part less", edit(func(x *index) { x.Parts = x.Parts[1:] }), []string{"each of its parts is whole"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, l := shipped(t)
			test.damage(t, l.Store, p)
			parent := t.TempDir()
			to := filepath.Join(parent, "to")
			if err := os.Mkdir(to, 0o700); err != nil {
				t.Fatal(err)
			}
			err := Fetcher{Store: l, Keep: filepath.Join(parent, "keep"), Workers: 1}.Fetch(t.Context(), p.Bundle.Sum, to)
			if err == nil {
				t.Fatal("it was fetched")
			}
			for _, want := range append(test.want, p.Bundle.Sum[:12]) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to contain %q", err, want)
				}
			}
			if !test.mixed {
				wantNothingElse(t, to, p.Dir)
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) > 2 {
				t.Errorf("there is %v, %v beside the directories", entries, err)
			}
		})
	}
	if err := (Fetcher{Store: storetest.NewMemory(), Keep: t.TempDir()}).Fetch(t.Context(), "../x", t.TempDir()); err == nil {
		t.Error("a name that is no digest was taken")
	}
}
