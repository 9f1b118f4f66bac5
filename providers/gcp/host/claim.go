package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// claimSilence is how long nothing is heard of a claim before its machine
// counts as gone: longer than a slice whose host is silent is left as it is.
const claimSilence = 90 * time.Second

// claimPause is the time between two reads.
const claimPause = 5 * time.Second

// Claim gives a machine that has no number of its own one in its slice: the
// report of that host, which is written on condition that no other machine has. A
// machine finds the number that it has claimed before. Where all are taken, it
// waits for one whose machine reports no more: groups replace machines.
func Claim(ctx context.Context, s store.Store, h Host) (int, error) {
	if h.Number >= 0 {
		return h.Number, nil
	}
	c := claim{store: s, host: h, seen: map[string]sighting{}}
	for {
		n, err := c.try(ctx)
		if err != nil {
			return -1, fmt.Errorf("claim a number in slice %s: %w", h.Spec.Name, err)
		}
		if n >= 0 {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return -1, fmt.Errorf("claim a number in slice %s: %w", h.Spec.Name, context.Cause(ctx))
		case <-time.After(claimPause):
		}
	}
}

// claim is one machine's search for a number.
type claim struct {
	store store.Store
	host  Host
	seen  map[string]sighting // by key
}

// sighting is a generation of a report, and when it was first seen.
type sighting struct {
	generation store.Generation
	at         time.Time
}

// try returns the number that the machine has, or could get; -1 if none is free.
func (c *claim) try(ctx context.Context) (int, error) {
	listed, err := c.store.List(ctx, store.HostsOf(c.host.Spec.Name))
	if err != nil {
		return -1, err
	}
	taken := map[string]store.Generation{}
	for _, a := range listed {
		taken[a.Key] = a.Generation
	}
	for n := range c.host.Spec.Hosts {
		mine, err := c.isMine(ctx, n, taken)
		if err != nil || mine {
			return n, err
		}
	}
	for n := range c.host.Spec.Hosts {
		if generation, free := c.free(n, taken); free {
			won, err := c.write(ctx, n, generation)
			if err != nil || won {
				return n, err
			}
		}
	}
	return -1, nil
}

// isMine reports whether this machine has claimed a number before.
func (c *claim) isMine(ctx context.Context, n int, taken map[string]store.Generation) (bool, error) {
	key := store.HostKey(c.host.Spec.Name, n)
	if _, ok := taken[key]; !ok {
		return false, nil
	}
	object, err := c.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := store.DecodeReport(object.Data)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	return r.Instance == c.host.Instance, nil
}

// free reports whether a number may be had, and the generation to replace.
func (c *claim) free(n int, taken map[string]store.Generation) (store.Generation, bool) {
	key := store.HostKey(c.host.Spec.Name, n)
	generation, ok := taken[key]
	if !ok {
		return store.Absent, true
	}
	if last, ok := c.seen[key]; !ok || last.generation != generation {
		c.seen[key] = sighting{generation: generation, at: time.Now()}
		return generation, false
	}
	return generation, time.Since(c.seen[key].at) >= claimSilence
}

// write reports whether the number is this machine's now.
func (c *claim) write(ctx context.Context, n int, want store.Generation) (bool, error) {
	name := c.host.Spec.Name
	data, err := store.Encode(state.HostReport{
		Slice: name, Host: n, Boot: rand.Text(), At: time.Now(), Address: c.host.Address, Instance: c.host.Instance,
	})
	if err != nil {
		return false, err
	}
	_, err = c.store.Put(ctx, store.HostKey(name, n), data, want)
	if errors.Is(err, store.ErrConflict) {
		return false, nil // another machine was faster
	}
	return err == nil, err
}
