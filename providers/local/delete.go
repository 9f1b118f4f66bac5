package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/schema"
)

// Delete marks a slice as going and has its agents end their tasks and themselves.
// The slice is listed as deleting until nothing of it is alive; the next inventory
// then removes it, and kills processes that outlive its grace.
func (p *Provider) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return classified("delete slice", spec.Name, p.delete(ctx, spec.Stack, spec.Name))
}

func (p *Provider) delete(ctx context.Context, stack, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := os.Stat(p.slice(name).dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := p.mark(ctx, stack, name); err != nil {
		return err
	}
	// Most slices are gone in an instant; for others the inventory goes on.
	deadline := time.NewTimer(deleteWait)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		gone, err := p.advance(name)
		if err != nil || gone {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // it is accepted
		case <-deadline.C:
			return nil
		case <-tick.C:
		}
	}
}

// deleteWait is how long a Delete stays to see the slice go.
const deleteWait = 150 * time.Millisecond

// mark records that the slice is going and how long that may take.
func (p *Provider) mark(ctx context.Context, stack, name string) error {
	held, err := p.lock(ctx, name)
	if err != nil {
		return err
	}
	defer held.release()
	s := p.slice(name)
	r, err := s.read()
	switch {
	case err != nil:
		return err
	case r == nil:
		return nil // never was a slice; the inventory sweeps it
	case r.Spec.Stack != stack:
		return failf(schema.ErrorPermission, "the slice is another stack's")
	case r.deleting():
		return nil
	}
	grace := time.Duration(0)
	for n := range r.Spec.Hosts {
		if who, ok := s.host(n).holderOf(taskLockFile); ok {
			grace = max(grace, time.Duration(who.Grace*float64(time.Second)))
		}
	}
	r.DeletingSince = time.Now()
	r.KillAt = r.DeletingSince.Add(grace + p.config.DeleteGrace)
	if err := held.still(); err != nil {
		return err
	}
	return s.write(r)
}

// dirty reports whether a host without an agent may have processes that an
// agent started and never saw end.
func (h host) dirty() (bool, error) {
	_, err := os.Stat(filepath.Join(h.dir, dirtyFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// advance does the next step of a deletion and reports whether the
// slice is gone.
func (p *Provider) advance(name string) (gone bool, err error) {
	held, err := p.tryLock(name)
	if errors.Is(err, filelock.ErrHeld) {
		return false, nil // another process is deleting it
	}
	if err != nil {
		return false, err
	}
	defer held.release()
	s := p.slice(name)
	r, err := s.read()
	if err != nil || r == nil {
		return err == nil, err
	}
	if !r.deleting() {
		return false, nil
	}
	late := time.Now().After(r.KillAt)
	left := false
	for n := range r.Spec.Hosts {
		alive, err := p.endHost(r, n, late)
		if err != nil {
			return false, err
		}
		left = left || alive
	}
	if left {
		return false, nil
	}
	if err := errors.Join(p.releaseAddresses(r), p.releaseGPUs(r)); err != nil {
		return false, err
	}
	return true, p.remove(s, held)
}

// endHost reports whether anything of a host is alive, and sees to it that it
// will not be. Agents end their tasks; where the agent is dead, one is started
// that ends what is left, for only agents can find all that a task has started.
// Such an agent takes no longer than it must, and is left alone.
func (p *Provider) endHost(r *record, n int, late bool) (alive bool, err error) {
	h := p.slice(r.Spec.Name).host(n)
	agent, err := h.agentAlive()
	if err != nil {
		return false, err
	}
	if agent {
		sig := unix.SIGTERM
		if late {
			sig = unix.SIGKILL
		}
		who, ok := h.holderOf(agentLockFile)
		if !ok || who.End {
			return true, nil
		}
		return true, signal(who.PID, sig)
	}
	left, err := h.taskAlive()
	if err == nil && !left {
		left, err = h.dirty()
	}
	if err != nil || !left {
		return false, err
	}
	if err := sealDescriptors(); err != nil {
		return true, err
	}
	return true, p.startAgent(r, n, true)
}
