package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

func TestPlaceStanding(t *testing.T) {
	made := Place{ID: "i", Path: "/one/.fray", Device: 1, Inode: 10, Machine: "m", Boot: "b"}
	at := func(change func(p *Place)) Place {
		p := made
		p.ID = ""
		change(&p)
		return p
	}
	tests := []struct {
		name  string
		now   Place
		found former
		want  PlaceStanding
	}{
		{"as it was", at(func(*Place) {}), formerSame, PlaceHere},
		{"after a reboot", at(func(p *Place) { p.Boot = "c" }), formerSame, PlaceHere},
		{"after a reboot that renumbered devices", at(func(p *Place) { p.Boot, p.Device = "c", 2 }), formerSame, PlaceRestored},
		{"by another name", at(func(p *Place) { p.Path = "/link/.fray" }), formerSame, PlaceHere},
		{"by another name after devices were renumbered", at(func(p *Place) { p.Path, p.Device = "/link/.fray", 2 }), formerSame, PlaceRestored},
		{"mv", at(func(p *Place) { p.Path = "/two/.fray" }), formerGone, PlaceMoved},
		{"mv, and another one in its place", at(func(p *Place) { p.Path = "/two/.fray" }), formerOther, PlaceCopied},
		{"cp -a", at(func(p *Place) { p.Path, p.Inode = "/two/.fray", 11 }), formerOther, PlaceCopied},
		{"cp -a to another file system, by chance of the same number", at(func(p *Place) { p.Path, p.Device = "/two/.fray", 2 }), formerOther, PlaceCopied},
		{"mv to another file system", at(func(p *Place) { p.Path, p.Device, p.Inode = "/two/.fray", 2, 11 }), formerGone, PlaceGone},
		{"a backup in its place", at(func(p *Place) { p.Inode = 11 }), formerSame, PlaceRestored},
		{"a container with it mounted", at(func(p *Place) { p.Machine, p.Path = "container", "/work/.fray" }), formerGone, PlaceMoved},
		{"a container with it mounted in the same place", at(func(p *Place) { p.Machine = "container" }), formerSame, PlaceHere},
		{"a container with a copy", at(func(p *Place) { p.Machine, p.Path, p.Inode = "container", "/work/.fray", 11 }), formerGone, PlaceGone},
		{"a share, from another machine", at(func(p *Place) { p.Machine, p.Boot = "n", "c" }), formerSame, PlaceElsewhere},
		{"a copy on another machine", at(func(p *Place) { p.Machine, p.Boot, p.Inode = "n", "c", 11 }), formerSame, PlaceElsewhere},
		{"a container after a reboot", at(func(p *Place) { p.Machine, p.Boot = "n", "" }), formerSame, PlaceElsewhere},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := made.standing(test.now, test.found); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if got := (Place{}).standing(made, formerGone); got != PlaceNew {
		t.Errorf("without a record: got %s, want new", got)
	}
}

// used is a store in which something was applied.
func used(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := CreateDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Put(t.Context(), StateKey, []byte("{}"), Absent); err != nil {
		t.Fatal(err)
	}
	return d
}

func reopened(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
}

// mayLead reports by which standing a store refuses its lease, "" if it does not.
func mayLead(t *testing.T, d *Dir) PlaceStanding {
	t.Helper()
	held, err := Acquire(t.Context(), d, LeaseConfig{})
	if refused, ok := errors.AsType[*PlaceError](err); ok {
		return refused.Standing
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ""
}

func TestACopyOfADirectoryHasNoLease(t *testing.T) {
	root := t.TempDir()
	one, two, three := filepath.Join(root, "one"), filepath.Join(root, "two"), filepath.Join(root, "three")
	original := used(t, one)
	copied(t, one, two)
	if got := mayLead(t, reopened(t, two)); got != PlaceCopied {
		t.Errorf("the copy: got %q, want copied", got)
	}
	if err := reopened(t, two).Settle(t.Context(), true); err == nil {
		t.Error("a copy is confirmed as moved while the original is there, want an error")
	}
	if _, err := Break(t.Context(), reopened(t, two), LeaseConfig{}, Lease{}); err == nil || errors.Is(err, ErrNotLive) {
		t.Errorf("the copy's lease is broken: got %v, want that it is a copy", err)
	}
	if got := mayLead(t, original); got != "" {
		t.Errorf("the original: got %q, want its lease", got)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	if got := mayLead(t, reopened(t, link)); got != "" {
		t.Errorf("by a link: got %q, want its lease", got)
	}
	if err := os.Rename(one, three); err != nil {
		t.Fatal(err)
	}
	if _, standing, err := reopened(t, three).Place(); err != nil || standing != PlaceMoved {
		t.Errorf("moved: got %q, %v, want moved", standing, err)
	}
	if got := mayLead(t, reopened(t, two)); got != PlaceGone {
		t.Errorf("the copy, whose original was moved: got %q, want gone", got)
	}
	if got := mayLead(t, reopened(t, three)); got != "" {
		t.Errorf("moved: got %q, want its lease", got)
	}
	if _, standing, err := reopened(t, three).Place(); err != nil || standing != PlaceHere {
		t.Errorf("moved, and used there: got %q, %v, want here", standing, err)
	}
	if err := reopened(t, two).Settle(t.Context(), true); err != nil {
		t.Errorf("confirmed where nothing is at the old place: got %v", err)
	}
	if got := mayLead(t, reopened(t, two)); got != "" {
		t.Errorf("confirmed: got %q, want its lease", got)
	}
}

// What holds no state yet is no copy of anything.
func TestACopyOfAnUnusedDirectoryIsItsOwn(t *testing.T) {
	root := t.TempDir()
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	d, err := CreateDir(one)
	if err != nil {
		t.Fatal(err)
	}
	first, _, err := d.Place()
	if err != nil || first.ID == "" {
		t.Fatalf("got %+v, %v, want a recorded place", first, err)
	}
	copied(t, one, two)
	if got := mayLead(t, reopened(t, two)); got != "" {
		t.Errorf("got %q, want its lease", got)
	}
	if second, standing, err := reopened(t, two).Place(); err != nil || standing != PlaceHere || second.ID == first.ID {
		t.Errorf("got %+v, %s, %v, want a place of its own", second, standing, err)
	}
}

// Processes that begin a stack at a time agree on what it is known by: the state of the
// first one has that, and would be a copy's to all others.
func TestPlacesOfAStackBegunAtATime(t *testing.T) {
	for range 20 {
		path := t.TempDir()
		begin := make(chan struct{})
		ids := make(chan string, 16)
		var all sync.WaitGroup
		for range cap(ids) {
			d := reopened(t, path)
			all.Go(func() {
				<-begin
				if err := d.Settle(t.Context(), false); err != nil {
					t.Error(err)
				}
				made, _, err := d.Place()
				if err != nil || made.ID == "" {
					t.Errorf("got %+v, %v, want a recorded place", made, err)
				}
				ids <- made.ID
			})
		}
		close(begin)
		all.Wait()
		close(ids)
		first := <-ids
		for id := range ids {
			if id != first {
				t.Fatalf("two processes know the stack by %s and by %s", first, id)
			}
		}
	}
}

func TestADamagedPlaceIsNotGuessed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one")
	d := used(t, path)
	if err := os.WriteFile(filepath.Join(path, placeFile), []byte(`{"id":"x"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(t.Context(), d, LeaseConfig{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
}
