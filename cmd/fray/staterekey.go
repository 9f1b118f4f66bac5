package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func stateRekeyCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Make a new key for secrets, and revoke what was published with the old one",
		Long: `Take away what people may have left behind or kept who may not read or write the
stack's store any more. The stack gets a new key, and all that is sealed in its
state is sealed anew: who has the former key opens nothing that is written from
then on. What was written before they may have kept, so change the secrets
themselves, too. The keys of commands, and the authorities that certify hosts and
commands for the namespaces of actors, are removed. Hosts get new certificates,
which their tasks use from then on; nothing restarts, and fray plan shows no change.
Commands that run now have to be run again. A job's token holds until its attempt
ends. Plans saved before, and versions of the state from before, cannot be applied or
rolled back to where they have secrets. An interrupted rekey is finished by the next
command that changes the stack.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.locateState(cmd.Context(), &flags.stateFlags)
			if err != nil {
				return err
			}
			return a.rekey(cmd.Context(), l.stack, flags.leaseTimeout)
		},
	}
	flags.register(cmd)
	return cmd
}

// rekey makes a new key, and the epoch under which nothing that was published before
// counts.
func (a *app) rekey(ctx context.Context, s *stack, wait time.Duration) error {
	before, _ := store.ReadLease(ctx, s.store) // without it no watch is waited for
	err := a.underLease(ctx, s, store.LeaseConfig{Wait: wait}, func(ctx context.Context, w apply.Rewriter) error {
		// A command that may publish its key may not be sealing with the old one any more.
		removed, err := clusterkeys.Prune(ctx, s.store, time.Now(), true)
		if err != nil {
			return err
		}
		if err := s.keys.provide(ctx, nil); err != nil {
			return err
		}
		if err := s.keys.rotate(ctx); err != nil {
			return err
		}
		if err := s.resealState(ctx, w); err != nil {
			return err
		}
		certified, damaged, err := clusterkeys.Recertify(ctx, s.store, w.Epoch, w.Valid)
		if err != nil {
			return err
		}
		if err := s.keys.settle(ctx); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "The stack has a new key, with which all of its secrets are sealed anew.\n"+
			"Removed %s of commands, which have to be run again. %s new certificates; the tasks run on.\n",
			counted(removed, "key", "keys"), counted(certified, "slice has", "slices have"))
		for _, key := range damaged {
			fmt.Fprintf(a.stdout, "What is in %s cannot be read: it gets its certificates when `fray apply` or `fray watch` writes it again.\n", key)
		}
		fmt.Fprintln(a.stdout, "Who could read the state before may have kept what was in it: change the secrets themselves, too.")
		return nil
	})
	if err == nil && before.Yields && before.Live(time.Now()) {
		s.awaitWatch(ctx)
	}
	return err
}

// finishRekey seals anew what a rekey that died has left, and removes its former
// key. The next holder of the lease does so before anything else.
func (s *stack) finishRekey(ctx context.Context, w apply.Rewriter) error {
	rotating, err := s.keys.rotating(ctx)
	if err != nil || !rotating {
		return err
	}
	if err := s.resealState(ctx, w); err != nil {
		return fmt.Errorf("finish an interrupted fray state rekey: %w", err)
	}
	if err := s.resealAssignments(ctx, w); err != nil {
		return fmt.Errorf("finish an interrupted fray state rekey: %w", err)
	}
	return s.keys.settle(ctx)
}

// resealState writes the state, and the configuration that it names, as sealed with
// the present key.
func (s *stack) resealState(ctx context.Context, w apply.Rewriter) error {
	if doc, _, err := s.present(ctx); err != nil || doc == nil {
		return err
	}
	next, err := w.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
		// The store has sealed it anew on its way here.
		next := doc.Clone()
		var err error
		next.Recorded, err = s.resealRecording(ctx, doc.Recorded)
		return next, err
	})
	if err != nil {
		return err
	}
	return store.SweepConfigurations(ctx, s.store, next.Recorded)
}

// resealRecording keeps a recorded configuration as sealed with the present key, and
// returns its new name. One that is lost or cannot be opened stays as it is.
func (s *stack) resealRecording(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	object, err := s.store.Get(ctx, store.ConfigurationKey(name))
	if errors.Is(err, store.ErrNotFound) {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	key, err := s.keys.key(ctx)
	if err != nil {
		return "", err
	}
	sealed, err := key.Reseal(string(object.Data))
	if errors.Is(err, state.ErrOtherKey) {
		return name, nil
	}
	if err != nil {
		return "", err
	}
	made := recordingOf(sealed)
	if _, err := s.store.Put(ctx, store.ConfigurationKey(made.name), made.data, store.Any); err != nil {
		return "", fmt.Errorf("record configuration: %w", err)
	}
	return made.name, nil
}

// resealAssignments writes all assignments as sealed with the present key. One that
// is damaged is for the leader to write anew.
func (s *stack) resealAssignments(ctx context.Context, w apply.Rewriter) error {
	objects, err := s.store.List(ctx, store.AssignPrefix)
	if err != nil {
		return fmt.Errorf("list what is assigned: %w", err)
	}
	for _, o := range objects {
		if err := w.Valid(); err != nil {
			return err
		}
		object, err := s.store.Get(ctx, o.Key) // sealed anew on its way here
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			_, err = s.store.Put(ctx, o.Key, object.Data, object.Generation)
		}
		if err != nil {
			return fmt.Errorf("seal %s anew: %w", o.Key, err)
		}
	}
	return nil
}
