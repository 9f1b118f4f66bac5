package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// history returns the newest versions of the state, at most limit of them (0:
// all), newest first. With store.ErrNoVersions the current one comes along.
func (s *stack) history(ctx context.Context, limit int) ([]stateVersion, error) {
	versioned, ok := store.AsVersioned(s.store)
	if !ok {
		return nil, fmt.Errorf("%s keeps no old versions of the state", s.store.Location())
	}
	found, listErr := versioned.Versions(ctx, store.StateKey)
	if listErr != nil && !errors.Is(listErr, store.ErrNoVersions) {
		return nil, listErr
	}
	if limit > 0 {
		found = found[:min(limit, len(found))]
	}
	live, err := s.store.Get(ctx, store.StateKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, keyring.ErrDamaged) {
		return nil, err
	}
	var versions []stateVersion
	for _, attrs := range found {
		v := stateVersion{Written: attrs.Updated, Current: attrs.Generation == live.Generation}
		object, err := versioned.GetVersion(ctx, store.StateKey, attrs.Generation)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was just removed
		}
		if errors.Is(err, keyring.ErrDamaged) || errors.Is(err, keyring.ErrWrongKey) {
			v.Problem, v.damaged = err.Error(), errors.Is(err, keyring.ErrDamaged)
			versions = append(versions, v)
			continue
		}
		if err != nil {
			return nil, err
		}
		doc, err := state.Decode(object.Data)
		if err != nil {
			v.Problem, v.damaged = err.Error(), errors.Is(err, state.ErrDamaged)
		}
		v.Serial, v.FrayVersion, v.Epoch, v.Revision = doc.Serial, doc.FrayVersion, doc.Epoch, doc.Revision
		v.Jobs, v.Slices, v.doc = len(doc.Jobs), len(doc.Slices), doc
		versions = append(versions, v)
	}
	return versions, listErr
}

func stateRollbackCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "rollback SERIAL",
		Short: "Make an older version of the state the current one",
		Long: `Make an older version of the state the current one, under a new serial. Nothing
in the world is touched: fray plan shows afterwards what the older state and the
world differ in. What runs goes on, and jobs that have ended since stay ended,
so that nothing runs twice. fray state history lists the serials.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			serial, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no serial; fray state history lists them", args[0])
			}
			s, err := a.openForRepair(cmd.Context(), &flags.stateFlags)
			if err != nil {
				return err
			}
			return a.rollback(cmd.Context(), s, flags.leaseTimeout, serial)
		},
	}
	flags.register(cmd)
	return cmd
}

func (a *app) rollback(ctx context.Context, s *stack, wait time.Duration, serial uint64) error {
	older, err := s.version(ctx, serial)
	if err != nil {
		return err
	}
	c := store.LeaseConfig{Wait: wait, MinEpoch: older.Epoch}
	return a.underLease(ctx, s, c, func(ctx context.Context, w apply.Rewriter) error {
		present, generation, err := s.present(ctx)
		if err != nil {
			return err
		}
		if err := s.openable(ctx, older); err != nil {
			return err
		}
		next := older.Clone()
		if present != nil {
			if older.Lineage != present.Lineage {
				return fmt.Errorf("serial %d is of another stack's lineage (%s, here %s); fray state push --force puts it in place", serial, older.Lineage, present.Lineage)
			}
			next.Serial = present.Serial
			next.Disowned = present.Clone().Disowned // what was given up since stays so
			for _, addr := range keepEnded(next, present) {
				fmt.Fprintf(a.stdout, "Kept: %s has ended since.\n", addr)
			}
		}
		if err := w.Replace(ctx, next, generation); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "The state is that of serial %d again, under serial %d. fray plan shows what follows.\n", serial, next.Serial+1)
		return nil
	})
}

// keepEnded takes over from the present state the jobs that have ended since,
// and returns their addresses.
func keepEnded(older, present *state.Document) []schema.Address {
	var kept []schema.Address
	for _, addr := range sortedJobs(present) {
		now, before := present.Jobs[addr], older.Jobs[addr]
		if !now.Status.Ended() || before != nil && (before.ID != now.ID || before.Status.Ended() && before.Attempt >= now.Attempt) {
			continue
		}
		older.Jobs[addr] = now
		kept = append(kept, addr)
	}
	return kept
}

// version finds the newest readable version of a serial.
func (s *stack) version(ctx context.Context, serial uint64) (*state.Document, error) {
	versions, err := s.history(ctx, 0)
	if err != nil && !errors.Is(err, store.ErrNoVersions) {
		return nil, err
	}
	for _, v := range versions {
		switch {
		case v.Serial != serial || !v.read():
			continue
		case v.Current:
			return nil, fmt.Errorf("serial %d is the current state", serial)
		case v.Problem != "":
			return nil, fmt.Errorf("serial %d cannot be read: %s", serial, v.Problem)
		}
		return &v.doc, nil
	}
	missing := fmt.Errorf("there is no serial %d in %s; fray state history lists those that there are", serial, s.store.Location())
	return nil, errors.Join(missing, err)
}
