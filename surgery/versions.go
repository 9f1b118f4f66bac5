package surgery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/journal"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// History returns the newest versions of the state, at most limit of them (0:
// all), newest first. With store.ErrNoVersions the current one comes along.
func History(ctx context.Context, s *stack.Stack, limit int) ([]Version, error) {
	versioned, ok := store.AsVersioned(s.Store)
	if !ok {
		return nil, fmt.Errorf("%s keeps no old versions of the state", s.Store.Location())
	}
	found, listErr := versioned.Versions(ctx, store.StateKey)
	if listErr != nil && !errors.Is(listErr, store.ErrNoVersions) {
		return nil, listErr
	}
	if limit > 0 {
		found = found[:min(limit, len(found))]
	}
	live, err := s.Store.Get(ctx, store.StateKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, keyring.ErrDamaged) {
		return nil, err
	}
	newest, err := newerThanSnapshot(ctx, s, live)
	if err != nil {
		return nil, err
	}
	var versions []Version
	if newest != nil {
		versions = append(versions, *newest)
	}
	for _, attrs := range found {
		v := Version{Written: attrs.Updated, Current: newest == nil && attrs.Generation == live.Generation}
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
		v.take(&doc)
		versions = append(versions, v)
	}
	if limit > 0 {
		versions = versions[:min(limit, len(versions))]
	}
	return versions, listErr
}

// newerThanSnapshot is the present state where that is the snapshot with later entries of its
// journal, nil where it is the snapshot alone.
func newerThanSnapshot(ctx context.Context, s *stack.Stack, live store.Object) (*Version, error) {
	if doc, err := state.Decode(live.Data); err != nil || doc.Journal == nil {
		return nil, nil
	}
	doc, at, err := journal.Load(ctx, s.Store)
	switch {
	case errors.Is(err, state.ErrDamaged) || errors.Is(err, keyring.ErrDamaged):
		return &Version{Written: live.Updated, Current: true, Problem: err.Error(), damaged: true}, nil
	case err != nil || !at.Newer:
		return nil, err
	}
	v := &Version{Written: at.Written, Current: true}
	v.take(doc)
	return v, nil
}

// take has a version be that of a document.
func (v *Version) take(doc *state.Document) {
	v.Serial, v.FrayVersion, v.Epoch, v.Revision = doc.Serial, doc.FrayVersion, doc.Epoch, doc.Revision
	v.Jobs, v.Slices, v.doc = len(doc.Jobs), len(doc.Slices), *doc
	v.doc.Journal = nil
	for _, o := range doc.Overrides {
		if o.Revision == doc.Revision {
			v.Overrides = append(v.Overrides, o)
		}
	}
}

// Rollback makes an earlier version of the state the present one, without what its jobs
// and slices have been through since.
func Rollback(ctx context.Context, a *terminal.Terminal, s *stack.Stack, wait time.Duration, serial uint64) error {
	older, err := storedVersion(ctx, s, serial)
	if err != nil {
		return err
	}
	c := store.LeaseConfig{Wait: wait, MinEpoch: older.Epoch}
	return stack.UnderLease(ctx, a, s, c, func(ctx context.Context, w apply.Rewriter) error {
		present, generation, err := s.Present(ctx)
		if err != nil {
			return err
		}
		if err := s.CheckOpenable(ctx, older); err != nil {
			return err
		}
		next := older.Clone()
		if present != nil {
			if older.Lineage != present.Lineage {
				return fmt.Errorf("serial %d is of another stack's lineage (%s, here %s); fray state push --force puts it in place", serial, older.Lineage, present.Lineage)
			}
			next.Serial = present.Serial
			next.Unmanaged = present.Clone().Unmanaged // what was released since stays so
			next.Metering = present.Metering           // and what was used
			for _, note := range keepProgress(next, present) {
				fmt.Fprintf(a.Stdout, "Kept: %s.\n", note)
			}
		}
		if err := w.Replace(ctx, next, generation); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "The state is that of serial %d again, under serial %d. fray plan shows what follows.\n", serial, next.Serial+1)
		return nil
	})
}

// storedVersion finds the newest readable version of a serial.
func storedVersion(ctx context.Context, s *stack.Stack, serial uint64) (*state.Document, error) {
	versions, err := History(ctx, s, 0)
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
	missing := fmt.Errorf("there is no serial %d in %s; fray state history lists those that there are", serial, s.Store.Location())
	return nil, errors.Join(missing, err)
}

// Version is one version of the state, for history and rollback.
type Version struct {
	Serial      uint64    `json:"serial"`
	Written     time.Time `json:"written"`
	FrayVersion string    `json:"fray_version"`
	Epoch       uint64    `json:"epoch"`
	Revision    uint64    `json:"revision"`
	Jobs        int       `json:"jobs"`
	Slices      int       `json:"slices"`
	Current     bool      `json:"current,omitempty"`
	// Overrides are the policies that were overridden for its revision.
	Overrides []state.Override `json:"overrides,omitempty"`
	// Problem reports why the version cannot be rolled back to.
	Problem string `json:"problem,omitempty"`

	damaged bool // its content is not what was written
	doc     state.Document
}

// read reports whether anything of the version could be read.
func (v *Version) read() bool { return v.FrayVersion != "" }

// ShowHistory prints a table of versions.
func ShowHistory(a *terminal.Terminal, versions []Version) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SERIAL\tWRITTEN\tREVISION\tJOBS\tSLICES\tBY\t")
	for _, v := range versions {
		var notes []string
		if v.Current {
			notes = append(notes, "current")
		}
		switch {
		case v.damaged:
			notes = append(notes, "damaged")
		case v.Problem != "":
			notes = append(notes, v.Problem)
		}
		written, note := v.Written.Local().Format("2006-01-02 15:04:05"), strings.Join(notes, ", ")
		if !v.read() {
			fmt.Fprintf(w, "-\t%s\t-\t-\t-\t-\t%s\n", written, note)
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\tfray %s\t%s\n", v.Serial, written, v.Revision, v.Jobs, v.Slices, v.FrayVersion, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return showOverrides(a, versions)
}

// showOverrides prints a table of the policies that were overridden, newest first.
func showOverrides(a *terminal.Terminal, versions []Version) error {
	i := slices.IndexFunc(versions, func(v Version) bool { return v.read() && len(v.doc.Overrides) > 0 })
	if i < 0 {
		return nil
	}
	fmt.Fprintln(a.Stdout, "\nPolicies that were overridden:")
	w := tabwriter.NewWriter(a.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tAT\tPOLICY\tBY\tREASON\t")
	for _, o := range slices.Backward(versions[i].doc.Overrides) {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t\n", o.Revision, o.At.Local().Format("2006-01-02 15:04:05"), o.Policy, printable(o.By), printable(o.Reason))
	}
	return w.Flush()
}

// printable is a text that other people wrote, on one line and without what a terminal
// takes for a command.
func printable(s string) string {
	quoted := strconv.Quote(strings.Join(strings.Fields(s), " "))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
