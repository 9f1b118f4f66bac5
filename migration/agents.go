package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// followPatience is how long live agents get to go on at the new place.
const followPatience = 30 * time.Second

// lead notifies the agents of the stack's new place, and waits until those
// that live report there.
func (m *Migration) lead(ctx context.Context) error {
	hosts := m.hosts()
	notified := map[string]bool{}
	for _, key := range hosts {
		slice, _, _ := strings.Cut(strings.TrimPrefix(key, store.HostsPrefix), "/")
		if notified[slice] {
			continue
		}
		notified[slice] = true
		if err := m.redirect(ctx, slice); err != nil {
			return fmt.Errorf("notify the agents of slice %s: %w; run the command again", slice, err)
		}
	}
	left := hosts
	var err error
	for deadline := time.Now().Add(followPatience); len(left) > 0 && time.Now().Before(deadline); {
		if left, err = m.notYet(ctx, left); err != nil {
			return err
		}
		if len(left) > 0 && !sleep.For(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	if n := len(hosts) - len(left); n > 0 {
		fmt.Fprintf(m.Terminal.Stdout, "%d hosts report there now.\n", n)
	}
	if len(left) > 0 {
		m.Terminal.Warn(fmt.Sprintf("%d hosts have not come along within %v (%s); those that live still will, and the next fray apply makes the others again",
			len(left), followPatience, strings.Join(left[:min(len(left), 3)], ", ")))
	}
	return nil
}

// hosts are the keys of the hosts that report, in order.
func (m *Migration) hosts() []string {
	var hosts []string
	for key := range m.copied {
		if strings.HasPrefix(key, store.HostsPrefix) {
			hosts = append(hosts, key)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// redirect writes where to go into the assignment that is left behind.
func (m *Migration) redirect(ctx context.Context, slice string) error {
	key := store.AssignKey(slice)
	for {
		assignment := state.Assignment{Slice: slice} // of one that has nothing to do
		object, err := m.From.Store.Get(ctx, key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			object.Generation = store.Absent
		case err != nil:
			return err
		default:
			if assignment, err = store.DecodeAssignment(object.Data); err != nil {
				return err
			}
		}
		assignment.MovedTo = string(m.To.At)
		data, err := store.Encode(assignment)
		if err != nil {
			return err
		}
		if _, err = m.From.Store.Put(ctx, key, data, object.Generation); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// notYet are those of hosts that have not reported at the new place.
func (m *Migration) notYet(ctx context.Context, hosts []string) ([]string, error) {
	listed, err := m.To.Store.List(ctx, store.HostsPrefix)
	if err != nil {
		return nil, err
	}
	moved := map[string]bool{}
	for _, o := range listed {
		moved[o.Key] = o.Generation != m.copied[o.Key]
	}
	return slices.DeleteFunc(slices.Clone(hosts), func(key string) bool { return moved[key] }), nil
}
