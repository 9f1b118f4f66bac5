package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func stateMigrateCommand(a *app) *cobra.Command {
	var flags editFlags
	cmd := &cobra.Command{
		Use:   "migrate FROM",
		Short: "Bring the state here from where it was kept before",
		Long: `Bring the state, with everything beside it, from FROM to where the fray block
says that it is kept; FROM is a directory, such as .fray, or gs://BUCKET/PREFIX.
Every object is read back and compared. What runs keeps running: its agents go
on at the new place. FROM is left as it is but for a note that says where the
state went, by which fray refuses to use it again. Interrupted, it may be run
again. Each workspace is brought by itself: FROM is the place of the default one,
and --workspace NAME brings what is kept below it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			where, err := a.siteOf([]string{flags.dir}, flags.config)
			if err != nil {
				return err
			}
			from, err := openFrom(ctx, where, args[0])
			if err != nil {
				return err
			}
			if err := where.make(ctx); err != nil && !errors.Is(err, errWorkspaceExists) {
				return err
			}
			to, err := openStack(ctx, where, true)
			if err != nil {
				return err
			}
			m := &migration{app: a, from: from, to: to, wait: flags.leaseTimeout}
			return m.run(ctx)
		},
	}
	flags.register(cmd)
	return cmd
}

// openFrom opens the stack that is kept somewhere else than the files say.
func openFrom(ctx context.Context, to site, where string) (*stack, error) {
	backend := schema.Backend{Kind: schema.BackendLocal, Path: where}
	if at := location(where); at.inBucket() {
		c, err := at.bucket()
		if err != nil {
			return nil, err
		}
		backend = schema.Backend{Kind: schema.BackendGCS, Bucket: c.Bucket, Prefix: c.Prefix, KMSKey: c.KMSKey}
	} else {
		abs, err := filepath.Abs(where)
		if err != nil {
			return nil, err
		}
		backend.Path = abs
	}
	to.settings = schema.Settings{Backend: backend}
	from, err := openStack(ctx, to, false)
	if err == nil && from.fresh {
		err = fmt.Errorf("there is no state in %s", from.at)
	}
	return from, err
}

// migration moves a stack from one store to another.
type migration struct {
	app      *app
	from, to *stack
	wait     time.Duration

	doc    *state.Document // of from
	copied map[string]store.Generation
}

func (m *migration) run(ctx context.Context) error {
	if m.from.at == m.to.at {
		return fmt.Errorf("the state is kept in %s already; declare the new place in the fray block first", m.to.at)
	}
	var err error
	if m.doc, _, err = m.from.present(ctx); err != nil {
		return err
	}
	if err := m.check(ctx); err != nil {
		return err
	}
	c := store.LeaseConfig{Wait: m.wait}
	return m.app.underLease(ctx, m.from, c, func(ctx context.Context, left apply.Rewriter) error {
		c.MinEpoch = left.Epoch // agents obey no lower one
		return m.app.underLease(ctx, m.to, c, func(ctx context.Context, right apply.Rewriter) error {
			return m.move(ctx, left, right)
		})
	})
}

// check refuses what cannot be moved before anything is touched.
func (m *migration) check(ctx context.Context) error {
	switch {
	case m.doc == nil:
		return fmt.Errorf("there is no state in %s", m.from.at)
	case m.doc.MovedTo != "" && m.doc.MovedTo != string(m.to.at):
		return fmt.Errorf("the state in %s was migrated to %s: that is where to bring it from", m.from.at, m.doc.MovedTo)
	}
	there, _, err := m.to.present(ctx)
	if err != nil {
		return err
	}
	if there != nil && there.MovedTo == "" {
		if there.Lineage == m.doc.Lineage && m.doc.MovedTo == string(m.to.at) {
			return fmt.Errorf("the state was migrated from %s to %s already", m.from.at, m.to.at)
		}
		return fmt.Errorf("there is a state in %s (lineage %s, serial %d); a migration needs an empty place", m.to.at, there.Lineage, there.Serial)
	}
	if there != nil && there.Lineage != m.doc.Lineage {
		return fmt.Errorf("%s holds what is left of another stack (lineage %s); a migration needs an empty place", m.to.at, there.Lineage)
	}
	if m.from.root == m.to.root {
		return nil
	}
	for name, slice := range m.doc.Slices {
		if slice.Spec.Provider == schema.ProviderLocal {
			return fmt.Errorf("slice %s and others of provider \"local\" live in %s and would not be found from %s; run fray destroy first",
				name, m.from.root, m.to.root)
		}
	}
	return nil
}

// move does it in an order that can be interrupted anywhere: there is never a
// moment at which both places hold a state that may be used.
func (m *migration) move(ctx context.Context, left, right apply.Rewriter) error {
	if err := m.key(ctx); err != nil {
		return err
	}
	if err := m.copyAll(ctx); err != nil {
		return err
	}
	if _, err := left.Edit(ctx, m.close); err != nil && !errors.Is(err, apply.ErrStateMigrated) {
		return err
	}
	_, generation, err := m.to.present(ctx)
	if err != nil {
		return err
	}
	doc := m.doc.Clone()
	doc.MovedTo, doc.LocalPlace = "", m.to.place()
	if err := right.Replace(ctx, doc, generation); err != nil {
		return err
	}
	fmt.Fprintf(m.app.stdout, "Moved the state (serial %d, %d objects, each read back and compared) from %s to %s.\n",
		doc.Serial+1, len(m.copied), m.from.at, m.to.at)
	return m.lead(ctx)
}

// key takes the stack's key along: without it nothing that is sealed opens.
func (m *migration) key(ctx context.Context) error {
	secrets, err := m.from.keys.open(ctx) // without former ones: see underLease
	if err == nil {
		err = m.to.keys.provide(ctx, secrets.Current)
	}
	if err != nil {
		return fmt.Errorf("take the stack's key along: %w", err)
	}
	return nil
}

// close notes in the state that is left behind where it went.
func (m *migration) close(doc *state.Document) (*state.Document, error) {
	if doc.Serial != m.doc.Serial {
		return nil, fmt.Errorf("the state changed meanwhile (serial %d, now %d); run the command again", m.doc.Serial, doc.Serial)
	}
	next := doc.Clone()
	next.MovedTo = string(m.to.at)
	return next, nil
}

// movedPrefixes are of all objects that move. Whatever else there is belongs to
// its place: the state and the lease, which are written anew; the key, which
// each place keeps in its way; other workspaces; and in a directory what this
// machine keeps there, its slices among that.
func movedPrefixes() []string {
	return []string{store.AssignPrefix, store.HostsPrefix, store.LogsPrefix, store.BundlesPrefix, store.ConfigurationsPrefix, store.JobsPrefix, clusterkeys.AuthoritiesKey}
}

const copiers = 16

// copyAll copies every object, reads it back and compares.
func (m *migration) copyAll(ctx context.Context) error {
	objects, err := m.from.store.List(ctx, movedPrefixes()...)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, o := range objects {
		wanted[o.Key] = true
	}
	if err := m.clear(ctx, wanted); err != nil {
		return err
	}
	m.copied = map[string]store.Generation{}
	generations := make([]store.Generation, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiers)
	for i, o := range objects {
		group.Go(func() (err error) {
			generations[i], err = m.copy(ctx, o.Key)
			if err != nil {
				return fmt.Errorf("copy %s: %w", o.Key, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, o := range objects {
		m.copied[o.Key] = generations[i]
	}
	return nil
}

// clear removes from the new place what an earlier stay left there.
func (m *migration) clear(ctx context.Context, wanted map[string]bool) error {
	objects, err := m.to.store.List(ctx, movedPrefixes()...)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if wanted[o.Key] {
			continue
		}
		if err := m.to.store.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

func (m *migration) copy(ctx context.Context, key string) (store.Generation, error) {
	if strings.HasPrefix(key, store.BundlesPrefix) && !bundle.IsIndex(key) {
		return 0, m.copyBlob(ctx, key)
	}
	object, err := m.from.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil // its host has just removed it
	}
	if err != nil {
		return 0, err
	}
	data, err := withoutNote(key, object.Data)
	if err != nil || data == nil {
		return 0, err
	}
	generation, err := m.to.store.Put(ctx, key, data, store.Any)
	if err != nil {
		return 0, err
	}
	back, err := m.to.store.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(back.Data, data) {
		return 0, fmt.Errorf("%s gave back something else than was written (%d bytes, wrote %d); run the command again", m.to.at, len(back.Data), len(data))
	}
	return generation, nil
}

// withoutNote is an assignment as its agents are to find it: without the note
// of an interrupted migration, and nil where there is nothing but that.
func withoutNote(key string, data []byte) ([]byte, error) {
	if !strings.HasPrefix(key, store.AssignPrefix) {
		return data, nil
	}
	assignment, err := store.DecodeAssignment(data)
	if err != nil {
		return nil, err
	}
	if assignment.MovedTo == "" {
		return data, nil
	}
	if assignment.Epoch == 0 {
		return nil, nil
	}
	assignment.MovedTo = ""
	return store.Encode(assignment)
}

// copyBlob copies an object that is too large for memory; its key is its
// content's hash, which the store checks, and reading back ends with the last byte.
func (m *migration) copyBlob(ctx context.Context, key string) error {
	content, err := m.from.store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := m.to.store.Upload(ctx, key, content); err != nil {
		return err
	}
	left, err := m.from.store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer left.Close()
	right, err := m.to.store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer right.Close()
	same, err := sameContent(left, right)
	if err == nil && !same {
		err = fmt.Errorf("%s gave back something else than was written; run the command again", m.to.at)
	}
	return err
}

func sameContent(a, b io.Reader) (bool, error) {
	const piece = 1 << 20
	left, right := make([]byte, piece), make([]byte, piece)
	for {
		n, errA := io.ReadFull(a, left)
		k, errB := io.ReadFull(b, right)
		if !bytes.Equal(left[:n], right[:k]) {
			return false, nil
		}
		ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
		switch {
		case ended(errA) && ended(errB):
			return true, nil
		case errA != nil || errB != nil:
			return false, errors.Join(errA, errB)
		}
	}
}
