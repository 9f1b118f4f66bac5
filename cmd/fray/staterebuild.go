package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

type rebuildFlags struct {
	editFlags
	mark         string
	withoutFiles bool
	force        bool
}

func stateRebuildCommand(a *app) *cobra.Command {
	var flags rebuildFlags
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Make a lost or damaged state again from what runs",
		Long: `Make a lost or damaged state again from what providers and hosts report: jobs
that run are found with their attempts and budgets, and keep running. Jobs that
have ended are found in the records that fray keeps beside the state, and do not
run again. A declared job of which nothing says that it never ran, or how it
ended, is recorded as stopped; fray apply --replace=ADDR starts it again. Try fray state history and
rollback first: an older state knows more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.rebuild(cmd.Context(), &flags)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&flags.mark, "stack", "", "the `MARK` of the stack, where there is more than one")
	cmd.Flags().BoolVar(&flags.withoutFiles, "without-files", false, "do not read the files; what has run and is declared in them may be run again")
	cmd.Flags().BoolVar(&flags.force, "force", false, "although the present state can be read")
	return cmd
}

func (a *app) rebuild(ctx context.Context, flags *rebuildFlags) error {
	s, err := a.openForRepair(ctx, &flags.stateFlags)
	if err != nil {
		return err
	}
	l := &loaded{stack: s, bundles: map[string]string{}, doc: &state.Document{Lineage: "lost"}}
	in := amend.RebuildInput{Stack: flags.mark, Random: randomLineage(), At: time.Now().UTC()}
	if !flags.withoutFiles {
		if in.Desired, err = a.declared(ctx, l, flags); err != nil {
			return err
		}
	}
	if in.Logs, err = s.logged(ctx); err != nil {
		return err
	}
	if in.Addrs, err = s.renamed(ctx); err != nil {
		return err
	}
	if in.Jobs, in.Kept, err = apply.ReadJournal(ctx, s.store); err != nil {
		return err
	}
	return a.underLease(ctx, s, store.LeaseConfig{Wait: flags.leaseTimeout}, func(ctx context.Context, w apply.Rewriter) error {
		current, generation, err := s.present(ctx)
		if err != nil {
			return err
		}
		if current != nil && !flags.force {
			return fmt.Errorf("the state in %s can be read (serial %d): nothing has to be rebuilt; --force does it all the same", s.store.Location(), current.Serial)
		}
		if in.Observed, err = l.observe(ctx, ""); err != nil {
			return err
		}
		doc, report, err := amend.Rebuild(in)
		if err != nil {
			return err
		}
		if current != nil {
			doc.Serial = current.Serial
		}
		doc.LocalPlace = s.place()
		w.Epoch = max(w.Epoch, doc.Epoch)
		if err := w.Replace(ctx, doc, generation); err != nil {
			return err
		}
		a.showReport(report)
		return nil
	})
}

// declared is what the files ask for.
func (a *app) declared(ctx context.Context, l *loaded, flags *rebuildFlags) (*schema.Desired, error) {
	src, diags := parse([]string{flags.dir})
	if err := a.diagnostics(filesOf(src), diags); err != nil {
		return nil, err
	}
	opts := flags.config.options(l.stack.workspace)
	cfg, diags, err := a.evaluate(ctx, src, &opts, flags.config)
	if err != nil {
		return nil, err
	}
	if err := a.diagnostics(src.Files(), diags); err != nil {
		return nil, errors.Join(err, errors.New("mend the files, or use --without-files"))
	}
	if l.sealer, err = l.stack.sealer(ctx, l.doc, false); err != nil {
		return nil, err
	}
	desired, err := l.prepare(cfg)
	return &desired, err
}

// logged are the ids of the jobs that have logs.
func (s *stack) logged(ctx context.Context) ([]string, error) {
	objects, err := s.store.List(ctx, store.LogsPrefix)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, o := range objects {
		id, _, _ := strings.Cut(strings.TrimPrefix(o.Key, store.LogsPrefix), "/")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// renamed are the addresses that jobs had last, by id, as older versions of the
// state have them: what was moved still runs under its first one.
func (s *stack) renamed(ctx context.Context) (map[string]schema.Address, error) {
	versions, err := s.history(ctx, 0)
	if err != nil && !errors.Is(err, store.ErrNoVersions) {
		return nil, err
	}
	addrs := map[string]schema.Address{}
	for _, v := range versions { // newest first
		for addr, j := range v.doc.Jobs {
			if _, known := addrs[j.ID]; !known {
				addrs[j.ID] = addr
			}
		}
	}
	return addrs, nil
}

func randomLineage() string { return strings.ToLower(rand.Text()) }

func (a *app) showReport(r amend.Report) {
	for _, part := range []struct {
		title    string
		findings []amend.Finding
	}{
		{"Recovered, and left running:", r.Recovered},
		{"Has ended, and stays so:", r.Ended},
		{"May have run, and it is not known how that ended:", r.Unknown},
		{"Left over:", r.LeftOver},
		{"Declared, and has never run:", r.New},
	} {
		if len(part.findings) == 0 {
			continue
		}
		fmt.Fprintln(a.stdout, part.title)
		for _, f := range part.findings {
			name := f.Slice
			if !f.Addr.IsZero() {
				name = f.Addr.String()
			}
			fmt.Fprintf(a.stdout, "  %s: %s\n", name, f.Text)
		}
	}
	fmt.Fprintln(a.stdout, "The state is rebuilt. fray plan shows what follows; nothing was touched.")
}
