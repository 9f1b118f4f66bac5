package surgery

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// ReadDocument reads a state from a file, or from standard input.
func ReadDocument(a *terminal.Terminal, path string) (*state.Document, error) {
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if path == "-" {
		read = func() ([]byte, error) { return io.ReadAll(a.Stdin) }
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
		a.Warn(fmt.Sprintf("%s is not as fray printed or wrote it: it was edited, damaged, or is of an older fray. It is read as it stands and gets a new checksum", path))
	}
	return &doc, nil
}

// MayReplace rejects a document that is not the current one's successor.
func MayReplace(current, pushed *state.Document, force bool) error {
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

// OpenForRepair opens the stack of a directory also where its state is lost or
// damaged.
func OpenForRepair(ctx context.Context, a *terminal.Terminal, f *Options) (*stack.Stack, error) {
	where, err := configuration.LocateSite(a, []string{f.Dir}, f.Configuration)
	if err != nil {
		return nil, err
	}
	s, err := stack.Open(ctx, where, false)
	if err == nil && s.Fresh {
		return nil, fmt.Errorf("there is no %s: fray init makes it", s.At)
	}
	return s, err
}

// PushDocument writes a document over the current one, which may be lost or damaged;
// check is given nil then.
func PushDocument(ctx context.Context, a *terminal.Terminal, s *stack.Stack, flags *EditOptions, check func(current *state.Document) error, doc *state.Document) error {
	return stack.UnderLease(ctx, a, s, store.LeaseConfig{Wait: flags.LeaseTimeout}, func(ctx context.Context, w apply.Rewriter) error {
		current, generation, err := s.Present(ctx)
		if err != nil {
			return err
		}
		if err := check(current); err != nil {
			return err
		}
		if err := s.CheckOpenable(ctx, doc); err != nil {
			return err
		}
		out := doc.Clone()
		if current != nil {
			if out.Lineage == current.Lineage && out.Serial < current.Serial {
				for _, addr := range dropCarriedOut(out, current) {
					fmt.Fprintf(a.Stdout, "Kept: %s was replaced or stopped as that state asks.\n", addr)
				}
			}
			out.Serial = max(out.Serial, current.Serial)
			if out.Lineage == current.Lineage {
				out.Metering = current.Metering // what was used stays so
			}
		}
		if err := w.Replace(ctx, out, generation); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "The state in %s is at serial %d. fray plan shows what follows.\n", s.Store.Location(), out.Serial+1)
		return nil
	})
}

// dropCarriedOut takes the requests out of an older state that were carried out since,
// so that they are not carried out on what runs now, and returns the jobs of which they
// were. All else of it stands as it was pushed.
func dropCarriedOut(older, current *state.Document) []schema.Address {
	var done []schema.Address
	for _, addr := range stack.SortedJobs(current) {
		now, before := current.Jobs[addr], older.Jobs[addr]
		if before == nil || before.ID != now.ID || now.Attempt < before.Attempt {
			continue
		}
		asked := before.Replace && !now.Replace || before.Stop && !now.Stop || !before.YieldsTo.IsZero() && now.YieldsTo.IsZero()
		if !asked {
			continue
		}
		older.Jobs[addr] = now
		for _, name := range slices.Concat(now.Slices, now.Staged) {
			if slice := current.Slices[name]; slice != nil {
				older.Slices[name] = slice
			}
		}
		done = append(done, addr)
	}
	return done
}
