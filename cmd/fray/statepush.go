package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

func statePushCommand(a *app) *cobra.Command {
	var flags editFlags
	var force bool
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a state document in place of the current one",
		Long: `Put a state document, as fray state pull prints it, in place of the current one;
FILE is - for standard input. One of another lineage, or older than the current
one, is refused; --force takes it all the same. One that was edited since it was
printed gets a new checksum, and that is said; what fray does not know in it is
refused. Nothing in the world is touched.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pushed, err := a.readDocument(args[0])
			if err != nil {
				return err
			}
			s, err := a.openForRepair(cmd.Context(), &flags.stateFlags)
			if err != nil {
				return err
			}
			return a.push(cmd.Context(), s, &flags, func(doc *state.Document) error {
				return mayReplace(doc, pushed, force)
			}, pushed)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also one of another lineage, or an older one")
	return cmd
}

func (a *app) readDocument(path string) (*state.Document, error) {
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if path == "-" {
		read = func() ([]byte, error) { return io.ReadAll(a.stdin) }
	}
	data, err := read()
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	doc, intact, err := state.DecodeEdited(data)
	if err != nil {
		return nil, fmt.Errorf("read state from %s: %w", path, err)
	}
	if !intact {
		a.warn(fmt.Sprintf("%s is not as fray printed or wrote it: it was edited, damaged, or is of an older fray. It is read as it stands and gets a new checksum", path))
	}
	return &doc, nil
}

// mayReplace refuses a document that is not the current one's successor.
func mayReplace(current, pushed *state.Document, force bool) error {
	if force || current == nil {
		return nil
	}
	if current.Lineage != pushed.Lineage {
		return fmt.Errorf("the pushed state is of lineage %s and the stack's of %s: it belongs to another stack; --force puts it in place all the same", pushed.Lineage, current.Lineage)
	}
	if pushed.Serial < current.Serial {
		return fmt.Errorf("the pushed state has serial %d and the stack's is at %d: it was changed since; pull again, or use --force to lose those changes", pushed.Serial, current.Serial)
	}
	return nil
}

// openForRepair opens the stack of a directory also where its state is lost or
// damaged.
func (a *app) openForRepair(ctx context.Context, f *stateFlags) (*stack, error) {
	where, err := a.siteOf([]string{f.dir}, f.config)
	if err != nil {
		return nil, err
	}
	s, err := openStack(ctx, where, false)
	if err == nil && s.fresh {
		return nil, fmt.Errorf("there is no %s: fray init makes it", s.at)
	}
	return s, err
}

// push writes a document over the current one, which may be lost or damaged;
// check is given nil then.
func (a *app) push(ctx context.Context, s *stack, flags *editFlags, check func(current *state.Document) error, doc *state.Document) error {
	return a.underLease(ctx, s, store.LeaseConfig{Wait: flags.leaseTimeout}, func(ctx context.Context, w apply.Rewriter) error {
		current, generation, err := s.present(ctx)
		if err != nil {
			return err
		}
		if err := check(current); err != nil {
			return err
		}
		if err := s.openable(ctx, doc); err != nil {
			return err
		}
		out := doc.Clone()
		if current != nil {
			out.Serial = max(out.Serial, current.Serial)
		}
		if err := w.Replace(ctx, out, generation); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "The state in %s is at serial %d. fray plan shows what follows.\n", s.store.Location(), out.Serial+1)
		return nil
	})
}

// present returns the state and its generation; nil where it is lost or damaged.
func (s *stack) present(ctx context.Context) (*state.Document, store.Generation, error) {
	object, err := s.store.Get(ctx, store.StateKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.Absent, nil
	}
	if errors.Is(err, keyring.ErrDamaged) && object.Generation != store.Absent { // the object itself, not the key
		return nil, object.Generation, nil
	}
	if err != nil {
		return nil, 0, err
	}
	doc, err := state.Decode(object.Data)
	if errors.Is(err, state.ErrDamaged) {
		return nil, object.Generation, nil
	}
	return &doc, object.Generation, err
}
