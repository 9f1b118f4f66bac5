package surgery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// RebuildOptions are how a lost state is rebuilt.
type RebuildOptions struct {
	EditOptions
	Mark         string
	WithoutFiles bool
	Force        bool
}

// RebuildState rebuilds a lost state from what runs and what is stored.
func RebuildState(ctx context.Context, a *terminal.Terminal, flags *RebuildOptions) error {
	s, err := OpenForRepair(ctx, a, &flags.Options)
	if err != nil {
		return err
	}
	l := &configuration.Loaded{Stack: s, Bundles: map[string]string{}, Document: &state.Document{Lineage: "lost"}}
	in := amend.RebuildInput{Stack: flags.Mark, Random: randomLineage(), At: time.Now().UTC()}
	if !flags.WithoutFiles {
		if in.Desired, err = desiredFor(ctx, a, l, flags); err != nil {
			return err
		}
	}
	if in.Logs, err = loggedJobs(ctx, s); err != nil {
		return err
	}
	if in.Addrs, err = renamed(ctx, s); err != nil {
		return err
	}
	if in.Jobs, in.Kept, err = apply.ReadJobRecords(ctx, s.Store); err != nil {
		return err
	}
	for id, r := range in.Jobs { // newer than the versions: written with the state that is lost
		in.Addrs[id] = r.Addr
	}
	return stack.UnderLease(ctx, a, s, store.LeaseConfig{Wait: flags.LeaseTimeout}, func(ctx context.Context, w apply.Rewriter) error {
		current, generation, err := s.Present(ctx)
		if err != nil {
			return err
		}
		if current != nil && !flags.Force {
			return fmt.Errorf("the state in %s can be read (serial %d): nothing has to be rebuilt; --force does it all the same", s.Store.Location(), current.Serial)
		}
		if in.Observed, err = l.Observe(ctx, ""); err != nil {
			return err
		}
		doc, report, err := amend.Rebuild(in)
		if err != nil {
			return err
		}
		if current != nil {
			doc.Serial = current.Serial
		}
		doc.LocalPlace = s.Place()
		w.Epoch = max(w.Epoch, doc.Epoch)
		if err := w.Replace(ctx, doc, generation); err != nil {
			return err
		}
		showReport(a, report)
		return nil
	})
}

// desiredFor is what the files ask for.
func desiredFor(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, flags *RebuildOptions) (*schema.Desired, error) {
	src, diags := configuration.Parse([]string{flags.Dir})
	if err := a.Diagnostics(terminal.FilesOf(src), diags); err != nil {
		return nil, err
	}
	opts := flags.Configuration.InWorkspace(l.Stack.Workspace)
	cfg, diags, err := configuration.Evaluate(ctx, a, src, &opts, flags.Configuration)
	if err != nil {
		return nil, err
	}
	if err := a.Diagnostics(src.Files(), diags); err != nil {
		return nil, errors.Join(err, errors.New("fix the files, or use --without-files"))
	}
	if l.Sealer, err = l.Stack.Sealer(ctx, l.Document, false); err != nil {
		return nil, err
	}
	desired, err := l.Prepare(cfg)
	return &desired, err
}

// loggedJobs are the ids of the jobs that have logs.
func loggedJobs(ctx context.Context, s *stack.Stack) ([]string, error) {
	objects, err := s.Store.List(ctx, store.LogsPrefix)
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
func renamed(ctx context.Context, s *stack.Stack) (map[string]schema.Address, error) {
	versions, err := History(ctx, s, 0)
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

func showReport(a *terminal.Terminal, r amend.Report) {
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
		fmt.Fprintln(a.Stdout, part.title)
		for _, f := range part.findings {
			name := f.Slice
			if !f.Addr.IsZero() {
				name = f.Addr.String()
			}
			fmt.Fprintf(a.Stdout, "  %s: %s\n", name, f.Text)
		}
	}
	fmt.Fprintln(a.Stdout, "The state is rebuilt. fray plan shows what follows; nothing was touched.")
}
