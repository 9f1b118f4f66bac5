package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
)

// Inventory lists the stack's slices, and finishes what deletions left to do.
func (p *Provider) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	inventory, err := p.inventory(ctx, stack)
	if err != nil {
		return schema.Inventory{}, classified("list slices", "", err)
	}
	return inventory, nil
}

func (p *Provider) inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	var inventory schema.Inventory
	entries, err := os.ReadDir(p.slices()) // by name
	if errors.Is(err, os.ErrNotExist) {
		return inventory, nil
	}
	if err != nil {
		return inventory, err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return inventory, context.Cause(ctx)
		}
		if strings.HasPrefix(e.Name(), goneMark) { // who began has died
			if err := os.RemoveAll(filepath.Join(p.slices(), e.Name())); err != nil {
				return inventory, fmt.Errorf("remove slice: %w", err)
			}
			continue
		}
		if checkName(e.Name()) != nil {
			continue // never made by us
		}
		r, err := p.slice(e.Name()).read()
		switch {
		case err != nil:
			inventory.Skipped = append(inventory.Skipped, schema.SkippedItem{Name: e.Name(), Reason: schema.SkipUnreadable, Text: err.Error()})
		case r == nil:
			if err := p.sweep(e.Name()); err != nil {
				return inventory, err
			}
		case stack != "" && r.Spec.Stack != stack:
			inventory.Foreign++
		default:
			status, err := p.status(r)
			if err != nil {
				return inventory, err
			}
			if status != nil {
				inventory.Slices = append(inventory.Slices, *status)
			}
		}
	}
	return inventory, nil
}

// Get reads a slice's directory.
func (p *Provider) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	status, err := p.get(spec)
	if err != nil {
		return schema.SliceStatus{}, false, classified("read slice", spec.Name, err)
	}
	if status == nil {
		return schema.SliceStatus{}, false, nil
	}
	return *status, true, nil
}

func (p *Provider) get(spec schema.SliceSpec) (*schema.SliceStatus, error) {
	if err := checkName(spec.Name); err != nil {
		return nil, err
	}
	r, err := p.slice(spec.Name).read()
	if err != nil || r == nil || r.Spec.Stack != spec.Stack {
		return nil, err
	}
	return p.status(r)
}

// status is how a slice stands, nil when it is gone.
func (p *Provider) status(r *record) (*schema.SliceStatus, error) {
	status := &schema.SliceStatus{Spec: r.Spec, Phase: schema.SliceReady, CreatedAt: r.CreatedAt}
	if r.deleting() {
		gone, err := p.advance(r.Spec.Name)
		if err != nil || gone {
			return nil, err
		}
		status.Phase = schema.SliceDeleting
		status.Reason = fmt.Sprintf("its processes are ending; they are killed at %s", r.KillAt.Format(time.TimeOnly))
		return status, nil
	}
	status.Agents = make([]int, r.Spec.Hosts)
	for n := range r.Spec.Hosts {
		who, serves, err := p.slice(r.Spec.Name).host(n).serves()
		if err != nil {
			return nil, err
		}
		if serves {
			status.Agents[n] = cmp.Or(who.PID, -1) // who takes the lock empties its file first
		} else {
			status.Down = append(status.Down, n)
			status.DownReason = cmp.Or(status.DownReason, p.slice(r.Spec.Name).host(n).lastError())
		}
	}
	if len(status.Down) > 0 {
		status.Phase = schema.SliceCreating
		status.Reason = fmt.Sprintf("%d of %d agents are down", len(status.Down), r.Spec.Hosts)
	}
	return status, nil
}

// sweep removes a slice that a crash left without a record. One that is just
// being made is locked, and left alone.
func (p *Provider) sweep(name string) error {
	held, err := p.tryLock(name)
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.release()
	s := p.slice(name)
	if r, err := s.read(); err != nil || r != nil {
		return err // recorded meanwhile
	}
	hosts, err := s.hostsOnDisk()
	if err != nil {
		return err
	}
	for _, h := range hosts {
		alive, err := h.alive()
		if err != nil {
			return err
		}
		if alive {
			return fmt.Errorf("slice %s has processes but no %s; end them and remove %s to go on", name, recordFile, s.dir)
		}
	}
	if err := p.releaseClaims(name); err != nil {
		return err
	}
	return p.remove(s, held)
}

// hostsOnDisk returns the hosts that have a directory.
func (s slice) hostsOnDisk() ([]host, error) {
	entries, err := os.ReadDir(s.hostsDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var hosts []host
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			hosts = append(hosts, host{dir: s.hostsDir() + "/" + e.Name()})
		}
	}
	return hosts, nil
}

// goneMark begins the names of directories of slices that are gone.
const goneMark = ".gone-"

// remove takes a slice without processes off the disk, its lock's file last. The
// directory gets another name first, so that one who is suspended in the middle
// never removes anything of the next slice of that name.
func (p *Provider) remove(s slice, held *hold) error {
	if err := held.still(); err != nil {
		return err
	}
	gone := filepath.Join(p.slices(), goneMark+s.name+"-"+rand.Text())
	if err := os.Rename(s.dir, gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove slice: %w", err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("remove slice: %w", err)
	}
	if held.still() != nil {
		return nil // the lock's file is another's
	}
	if err := os.Remove(held.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove slice: %w", err)
	}
	return nil
}
