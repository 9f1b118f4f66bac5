package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fray-ml/fray/durable"
)

// placeFile is where a directory store keeps its Place. No key reaches it, and a
// copy of the directory has it too: that is how a copy is recognized.
const placeFile = ".place"

// Place is where a directory store is, by what distinguishes a directory from its copy.
type Place struct {
	ID      string `json:"id"` // random, for the store's whole life
	Path    string `json:"path"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Machine string `json:"machine"` // see machineID
	Host    string `json:"host"`    // its name, for people
	Boot    string `json:"boot,omitempty"`
}

// PlaceStanding is how a directory stands to the place that is recorded in it.
type PlaceStanding string

// The standings. Only the last three are errors.
const (
	PlaceNew   PlaceStanding = "new"   // none is recorded
	PlaceHere  PlaceStanding = "here"  // also under another name, as by a bind mount
	PlaceMoved PlaceStanding = "moved" // the same directory, renamed
	// PlaceRestored: another directory of the same path, as of a backup; or the
	// numbers of its file system changed.
	PlaceRestored  PlaceStanding = "restored"
	PlaceGone      PlaceStanding = "gone"      // another directory, and that which it was made in is gone
	PlaceCopied    PlaceStanding = "copied"    // another directory beside that which it was made in
	PlaceElsewhere PlaceStanding = "elsewhere" // made on another machine
)

// former is what is found under the recorded path.
type former uint8

const (
	formerGone  former = iota // nothing of this store
	formerSame                // this very directory
	formerOther               // the store that this one is a copy of, or what cannot be read
)

// standing judges by the recorded place, the present one, and what is found where
// the recorded one was.
func (p Place) standing(now Place, found former) PlaceStanding {
	sameKernel := p.Boot != "" && p.Boot == now.Boot
	identical := p.Device == now.Device && p.Inode == now.Inode
	switch {
	case p.ID == "":
		return PlaceNew
	case !sameKernel && p.Machine != now.Machine:
		return PlaceElsewhere
	case identical && (p.Path == now.Path || found == formerSame):
		return PlaceHere
	case identical && found == formerGone:
		return PlaceMoved
	case p.Path == now.Path:
		return PlaceRestored
	case found == formerSame && p.Inode == now.Inode:
		return PlaceRestored
	case found == formerGone:
		return PlaceGone
	default:
		return PlaceCopied
	}
}

// Placed is what a Store may offer besides: it knows where it was made, and so
// whether it is a copy.
type Placed interface {
	// Place returns the recorded place, zero if there is none, and how the store
	// stands to it.
	Place() (Place, PlaceStanding, error)
	// Settle records the present place unless that is rejected with a *PlaceError;
	// confirmed reports that people have confirmed a move.
	Settle(ctx context.Context, confirmed bool) error
}

// AsPlaced unwraps stores. It reports false for a store that has one
// place only, as a bucket.
func AsPlaced(s Store) (Placed, bool) { return behind[Placed](s) }

// PlaceError reports that a store is not where it was made. It is returned as a pointer.
type PlaceError struct {
	Standing PlaceStanding
	Made     Place
	Path     string // where it is now
}

func (e *PlaceError) Error() string {
	mine := fmt.Sprintf("to begin a stack of its own here, remove %s, which touches nothing that runs", e.Path)
	switch e.Standing {
	case PlaceCopied:
		return fmt.Sprintf("the state in %s is a copy: what it knows of runs from %s, which is still there; run fray there; %s", e.Path, e.Made.Path, mine)
	case PlaceGone:
		return fmt.Sprintf("the state in %s was made in %s, which is gone: either it was moved here, or it is a copy; "+
			"if it was moved, confirm that with fray state moved; %s", e.Path, e.Made.Path, mine)
	case PlaceElsewhere:
		return fmt.Sprintf("the state in %s was made on another machine, %s, in %s: run fray there; if it was moved here, and nothing of it runs there any more, "+
			"confirm that with fray state moved --force; %s", e.Path, cmp.Or(e.Made.Host, "unknown"), e.Made.Path, mine)
	case PlaceNew, PlaceHere, PlaceMoved, PlaceRestored:
	}
	return fmt.Sprintf("the state in %s is where it belongs", e.Path)
}

// CheckPlace returns a *PlaceError where a store is not where it was made.
func CheckPlace(s Store) error {
	placed, ok := AsPlaced(s)
	if !ok {
		return nil
	}
	made, standing, err := placed.Place()
	if err != nil {
		return err
	}
	return misplaced(made, standing, s.Location())
}

func misplaced(made Place, standing PlaceStanding, path string) error {
	switch standing {
	case PlaceCopied, PlaceGone, PlaceElsewhere:
		return &PlaceError{Standing: standing, Made: made, Path: path}
	case PlaceNew, PlaceHere, PlaceMoved, PlaceRestored:
	}
	return nil
}

// settlePlace is Settle for a store that knows its place.
func settlePlace(ctx context.Context, s Store) error {
	if placed, ok := AsPlaced(s); ok {
		return placed.Settle(ctx, false)
	}
	return nil
}

var _ Placed = (*Dir)(nil)

// Place returns the recorded place and how the directory stands to it.
func (d *Dir) Place() (Place, PlaceStanding, error) {
	made, err := readPlace(d.root)
	if err != nil {
		return Place{}, "", err
	}
	now, err := d.present()
	if err != nil {
		return Place{}, "", err
	}
	return made, made.standing(now, d.formerly(made)), nil
}

// Settle records the present place. until the first apply there is nothing that
// a copy could harm: it becomes a store of its own.
func (d *Dir) Settle(ctx context.Context, confirmed bool) error {
	_, standing, err := d.Place()
	if err != nil || standing == PlaceHere {
		return err
	}
	if err := d.prepare(); err != nil {
		return err
	}
	l, err := d.lock(ctx, placeFile) // or processes that begin a stack together would each give it an ID
	if err != nil {
		return fmt.Errorf("record place: %w", err)
	}
	defer l.unlock()
	return d.settle(ctx, confirmed)
}

// settle is Settle under the lock.
func (d *Dir) settle(ctx context.Context, confirmed bool) error {
	made, standing, err := d.Place()
	if err != nil || standing == PlaceHere {
		return err
	}
	if err := misplaced(made, standing, d.root); err != nil {
		used, listErr := d.List(ctx, StateKey, AssignPrefix, HostsPrefix)
		if listErr != nil {
			return listErr
		}
		if len(used) > 0 && (!confirmed || standing == PlaceCopied) {
			return err
		}
		if len(used) == 0 {
			made.ID = ""
		}
	}
	now, err := d.present()
	if err != nil {
		return err
	}
	now.ID = cmp.Or(made.ID, newNonce())
	if standing != PlaceNew {
		return d.writePlace(now, durable.WriteFile)
	}
	err = d.writePlace(now, durable.WriteNew)
	if errors.Is(err, fs.ErrExist) { // of a process whose lock was taken from it while it was suspended
		return nil
	}
	return err
}

func (d tree) present() (Place, error) {
	p := Place{Path: d.root, Machine: machineID(), Boot: bootID()}
	if real, err := filepath.EvalSymlinks(d.root); err == nil {
		p.Path = real
	}
	p.Host, _ = os.Hostname() // it is for people
	info, err := os.Stat(d.root)
	if err != nil {
		return Place{}, fileError("open store", d.root, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		p.Device, p.Inode = deviceOf(stat), stat.Ino
	}
	return p, nil
}

// formerly is what is found under the recorded path.
func (d tree) formerly(made Place) former {
	mine, err := os.Stat(d.root)
	if err != nil || made.Path == "" {
		return formerGone
	}
	there, err := os.Stat(made.Path)
	switch {
	case notThere(err):
		return formerGone
	case err != nil:
		return formerOther
	case os.SameFile(mine, there):
		return formerSame
	}
	other, err := readPlace(made.Path)
	if err == nil && other.ID != made.ID {
		return formerGone // another store took its place, or none
	}
	return formerOther
}

// readPlace returns the zero Place where none is recorded.
func readPlace(root string) (Place, error) {
	path := filepath.Join(root, placeFile)
	data, err := os.ReadFile(path)
	if notThere(err) {
		return Place{}, nil
	}
	if err != nil {
		return Place{}, fileError("open", path, err)
	}
	var p Place
	if err := Decode(data, &p); err != nil {
		return Place{}, fmt.Errorf("read %s: %w; if this state is no copy of another one that is in use, remove that file", path, err)
	}
	return p, nil
}

func (d *Dir) writePlace(p Place, write func(string, []byte, fs.FileMode) error) error {
	data, err := EncodeIndented(p)
	if err != nil {
		return fmt.Errorf("record place: %w", err)
	}
	path := filepath.Join(d.root, placeFile)
	if err := write(path, data, fileMode); err != nil {
		return fileError("write", path, err)
	}
	return nil
}
