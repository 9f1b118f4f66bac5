package bundle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// ledger is a store that notes what is done to it.
type ledger struct {
	storetest.Faulty
	mu    sync.Mutex
	calls []string // "upload bundles/…" of what succeeded
}

func newLedger(s store.Store) *ledger {
	l := &ledger{}
	l.Store = s
	l.After = func(op storetest.Op, key string) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, string(op)+" "+key)
		return nil
	}
	return l
}

// made returns the calls of an operation and forgets them.
func (l *ledger) made(op storetest.Op) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	l.calls = slices.DeleteFunc(l.calls, func(c string) bool {
		if !strings.HasPrefix(c, string(op)+" ") {
			return false
		}
		found = append(found, c)
		return true
	})
	return found
}

// project is a directory with what was measured of it.
func project(t *testing.T, dir string) Project {
	t.Helper()
	return Project{Dir: dir, Bundle: measured(t, tiny(), dir)}
}

func ship(t *testing.T, s store.Store, projects ...Project) {
	t.Helper()
	if err := (Shipper{Store: s, packer: tiny()}).Ship(t.Context(), projects...); err != nil {
		t.Fatal(err)
	}
}

func wantCalls(t *testing.T, what string, l *ledger, want map[storetest.Op]int) {
	t.Helper()
	for _, op := range []storetest.Op{storetest.OpGet, storetest.OpPut, storetest.OpList, storetest.OpDelete, storetest.OpUpload, storetest.OpOpen} {
		if got := l.made(op); len(got) != want[op] {
			t.Errorf("%s: %d calls of %s, want %d: %q", what, len(got), op, want[op], got)
		}
	}
}

// wantFetched fetches a bundle and compares it with the project's directory.
func wantFetched(t *testing.T, s store.Store, p Project) {
	t.Helper()
	to := t.TempDir()
	keep := filepath.Join(t.TempDir(), "keep")
	if err := (Fetcher{Store: s, Keep: keep}).Fetch(t.Context(), p.Bundle.Sum, to); err != nil {
		t.Fatal(err)
	}
	wantSame(t, to, p.Dir)
	if _, err := os.Stat(keep); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("parts are kept for nothing (%v)", err)
	}
}

func wantSame(t *testing.T, got, want string) {
	t.Helper()
	if a, b := measured(t, tiny(), got), measured(t, tiny(), want); a.Sum != b.Sum {
		t.Errorf("what is in %s differs from %s", got, want)
	}
}

func TestShip(t *testing.T) {
	l := newLedger(storetest.NewMemory())
	small, large := project(t, tree(t, map[string]string{"a": "1"})), project(t, sources(t, 120))
	if len(small.Bundle.Parts) != 1 || len(large.Bundle.Parts) < 8 {
		t.Fatalf("there are %d and %d parts", len(small.Bundle.Parts), len(large.Bundle.Parts))
	}
	ship(t, l, small)
	wantCalls(t, "small", l, map[storetest.Op]int{storetest.OpList: 1, storetest.OpUpload: 1})
	ship(t, l, small)
	wantCalls(t, "small again", l, map[storetest.Op]int{storetest.OpList: 1})
	if object, err := l.Store.Get(t.Context(), store.BundleKey(small.Bundle.Sum)); err != nil || object.Size != small.Bundle.Size() {
		t.Errorf("a small bundle is not an object of its name (%v)", err)
	}

	ship(t, l, large)
	l.mu.Lock()
	last := l.calls[len(l.calls)-1]
	l.mu.Unlock()
	if last != "put "+indexKey(large.Bundle.Sum) {
		t.Errorf("the last call was %s, want the index to be written last", last)
	}
	wantCalls(t, "large", l, map[storetest.Op]int{
		storetest.OpList: 2, storetest.OpUpload: len(large.Bundle.Parts), storetest.OpPut: 1,
	})
	for key, want := range map[string]bool{
		indexKey(large.Bundle.Sum): true, store.BundleKey(large.Bundle.Sum): false, "logs/x.parts": false,
	} {
		if IsIndex(key) != want {
			t.Errorf("%s is an index: %t, want %t", key, !want, want)
		}
	}
	ship(t, l, large)
	wantCalls(t, "large again", l, map[storetest.Op]int{storetest.OpList: 2, storetest.OpGet: 1})
	wantFetched(t, l, small)
	wantFetched(t, l, large)
}

func TestShipSendsOnlyWhatChanged(t *testing.T) {
	l := newLedger(storetest.NewMemory())
	dir := sources(t, 120)
	ship(t, l, project(t, dir))
	l.made(storetest.OpUpload)
	if err := os.WriteFile(filepath.Join(dir, "pkg3", "new.py"), []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := project(t, dir)
	var told []string
	s := Shipper{Store: l, packer: tiny(), Starting: func(p Project, there int64) {
		if there == 0 || there >= p.Bundle.Size() {
			t.Errorf("told that %d of %d bytes are there", there, p.Bundle.Size())
		}
		told = append(told, p.Dir)
	}}
	if err := s.Ship(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if sent := l.made(storetest.OpUpload); len(sent) == 0 || len(sent) > 3 {
		t.Errorf("sent %d of %d parts, want 1 to 3", len(sent), len(changed.Bundle.Parts))
	}
	if !slices.Equal(told, []string{dir}) {
		t.Errorf("told of %q, want %q", told, dir)
	}
	wantFetched(t, l, changed)
	// Neither what is there nor what is small is worth a word.
	if err := s.Ship(t.Context(), changed, project(t, tree(t, map[string]string{"a": "1"}))); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 {
		t.Errorf("told of %q", told[1:])
	}
}

// A project with the same files twice has the same parts twice.
func TestShipSendsEqualPartsOnce(t *testing.T) {
	l := newLedger(storetest.NewMemory())
	dir := t.TempDir()
	data := make([]byte, 1<<20)
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := project(t, dir)
	distinct := map[string]bool{}
	for _, part := range p.Bundle.Parts {
		distinct[part.Sum] = true
	}
	ship(t, l, p)
	if sent := l.made(storetest.OpUpload); len(sent) != len(distinct) || len(sent) >= len(p.Bundle.Parts) {
		t.Errorf("sent %d parts, want the %d that differ of %d", len(sent), len(distinct), len(p.Bundle.Parts))
	}
	wantFetched(t, l, p)
	if got := l.made(storetest.OpOpen); len(got) != len(distinct) {
		t.Errorf("fetched %d parts, want %d", len(got), len(distinct))
	}
}

func TestShipGoesOnAfterAFailure(t *testing.T) {
	broken := errors.New("the network is gone")
	p := project(t, sources(t, 120))
	for _, fails := range []int{0, 1, 5, len(p.Bundle.Parts) - 1} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			l := newLedger(storetest.NewMemory())
			var left atomic.Int64
			left.Store(int64(fails))
			l.Before = func(op storetest.Op, _ string) error {
				if op == storetest.OpUpload && left.Add(-1) < 0 {
					return broken
				}
				return nil
			}
			s := Shipper{Store: l, packer: tiny()}
			if err := s.Ship(t.Context(), p); !errors.Is(err, broken) || !strings.Contains(err.Error(), p.Dir) {
				t.Errorf("got %v, want %v of %s", err, broken, p.Dir)
			}
			// What is under way with the one that failed ends, too.
			sent, indexes := l.made(storetest.OpUpload), l.made(storetest.OpPut)
			if len(sent) > fails || len(sent) < fails-(usualWorkers-1) || len(indexes) != 0 {
				t.Errorf("sent %q and the index %q, want about %d parts", sent, indexes, fails)
			}
			l.Before = nil
			ship(t, l, p)
			if rest := l.made(storetest.OpUpload); len(rest) != len(p.Bundle.Parts)-len(sent) {
				t.Errorf("then sent %d parts, want the other %d", len(rest), len(p.Bundle.Parts)-len(sent))
			}
			wantFetched(t, l, p)
		})
	}
}

// killed starts the test binary in a role and kills it when it is stuck.
func killed(t *testing.T, role string, args ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out).Scan()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !said {
		t.Fatalf("%s ended before it was killed", role)
	}
}

func TestShipGoesOnAfterAKill(t *testing.T) {
	d, err := store.CreateDir(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	p := project(t, sources(t, 120))
	killed(t, "ship", d.Location(), p.Dir)
	found, err := d.List(t.Context(), store.BundlesPrefix)
	if err != nil || len(found) == 0 || len(found) > 5 {
		t.Fatalf("the one that was killed left %d objects, %v, want 1 to 5", len(found), err)
	}
	l := newLedger(d)
	ship(t, l, p)
	wantCalls(t, "after the kill", l, map[storetest.Op]int{
		storetest.OpList: 2, storetest.OpUpload: len(p.Bundle.Parts) - len(found), storetest.OpPut: 1,
	})
	wantFetched(t, d, p)
}

func TestManyShipTheSameAtOnce(t *testing.T) {
	d, err := store.CreateDir(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	p := project(t, sources(t, 120))
	other := project(t, sources(t, 110)) // shares parts
	var shipping sync.WaitGroup
	for range 6 {
		shipping.Go(func() {
			if err := (Shipper{Store: d, packer: tiny()}).Ship(t.Context(), p, other, p); err != nil {
				t.Error(err)
			}
		})
	}
	shipping.Wait()
	wantFetched(t, d, p)
	wantFetched(t, d, other)
}

func TestShipTakesTurns(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			slow := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, _ string) error {
				if op == storetest.OpUpload {
					time.Sleep(time.Second)
				}
				return nil
			}}
			p := project(t, sources(t, 120))
			start := time.Now()
			if err := (Shipper{Store: slow, Workers: workers, packer: tiny()}).Ship(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			at := max(workers, 1)
			if workers == 0 {
				at = 4
			}
			want := time.Duration((len(p.Bundle.Parts)+at-1)/at) * time.Second
			if took := time.Since(start); took != want {
				t.Errorf("%d workers: %d parts took %v, want %v", workers, len(p.Bundle.Parts), took, want)
			}
		})
	}
}

func TestShipEndsWithItsContext(t *testing.T) {
	lost := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	l := newLedger(storetest.NewMemory())
	l.Before = func(op storetest.Op, _ string) error {
		if op == storetest.OpUpload {
			cancel(lost)
		}
		return nil
	}
	p := project(t, sources(t, 120))
	if err := (Shipper{Store: l, packer: tiny()}).Ship(ctx, p); !errors.Is(err, lost) {
		t.Errorf("got %v, want %v", err, lost)
	}
	if puts := l.made(storetest.OpPut); len(puts) != 0 {
		t.Errorf("it wrote %q", puts)
	}
}
