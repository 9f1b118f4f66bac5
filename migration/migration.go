package migration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/apply"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// OpenFrom opens the stack that is kept elsewhere than the files declare.
func OpenFrom(ctx context.Context, to stack.Site, where string) (*stack.Stack, error) {
	backend := schema.Backend{Kind: schema.BackendLocal, Path: where}
	if at := stack.Location(where); at.InBucket() {
		c, err := at.Bucket()
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
	to.Settings = schema.Settings{Backend: backend}
	from, err := stack.Open(ctx, to, false)
	if err == nil && from.Fresh {
		err = fmt.Errorf("there is no state in %s", from.At)
	}
	return from, err
}

// Migration moves a stack from one store to another.
type Migration struct {
	Terminal *terminal.Terminal
	From, To *stack.Stack
	Wait     time.Duration

	doc    *state.Document // of from
	copied map[string]store.Generation
}

// Run moves the stack; until its last step the old place stays as it was.
func (m *Migration) Run(ctx context.Context) error {
	if m.From.At == m.To.At {
		return fmt.Errorf("the state is kept in %s already; declare the new place in the fray block first", m.To.At)
	}
	var err error
	if m.doc, _, err = m.From.Present(ctx); err != nil {
		return err
	}
	if err := m.check(ctx); err != nil {
		return err
	}
	c := store.LeaseConfig{Wait: m.Wait}
	return stack.UnderLease(ctx, m.Terminal, m.From, c, func(ctx context.Context, left apply.Rewriter) error {
		c.MinEpoch = left.Epoch // agents obey no lower one
		return stack.UnderLease(ctx, m.Terminal, m.To, c, func(ctx context.Context, right apply.Rewriter) error {
			return m.move(ctx, left, right)
		})
	})
}

// check rejects what cannot be moved before anything is touched.
func (m *Migration) check(ctx context.Context) error {
	switch {
	case m.doc == nil:
		return fmt.Errorf("there is no state in %s", m.From.At)
	case m.doc.MovedTo != "" && m.doc.MovedTo != string(m.To.At):
		return fmt.Errorf("the state in %s was migrated to %s: that is where to bring it from", m.From.At, m.doc.MovedTo)
	}
	there, _, err := m.To.Present(ctx)
	if err != nil {
		return err
	}
	if there != nil && there.MovedTo == "" {
		if there.Lineage == m.doc.Lineage && m.doc.MovedTo == string(m.To.At) {
			return fmt.Errorf("the state was migrated from %s to %s already", m.From.At, m.To.At)
		}
		return fmt.Errorf("there is a state in %s (lineage %s, serial %d); a migration needs an empty place", m.To.At, there.Lineage, there.Serial)
	}
	if there != nil && there.Lineage != m.doc.Lineage {
		return fmt.Errorf("%s holds what is left of another stack (lineage %s); a migration needs an empty place", m.To.At, there.Lineage)
	}
	if m.From.Root == m.To.Root {
		return nil
	}
	for name, slice := range m.doc.Slices {
		if slice.Spec.Provider == schema.ProviderLocal {
			return fmt.Errorf("slice %s and others of provider \"local\" live in %s and would not be found from %s; run fray destroy first",
				name, m.From.Root, m.To.Root)
		}
	}
	return nil
}

// move does it in an order that can be interrupted anywhere: there is never a
// moment at which both places hold a state that may be used.
func (m *Migration) move(ctx context.Context, left, right apply.Rewriter) error {
	if err := m.key(ctx); err != nil {
		return err
	}
	if err := m.copyAll(ctx); err != nil {
		return err
	}
	if _, err := left.Edit(ctx, m.close); err != nil && !errors.Is(err, apply.ErrStateMigrated) {
		return err
	}
	_, generation, err := m.To.Present(ctx)
	if err != nil {
		return err
	}
	doc := m.doc.Clone()
	doc.MovedTo, doc.LocalPlace = "", m.To.Place()
	if err := right.Replace(ctx, doc, generation); err != nil {
		return err
	}
	fmt.Fprintf(m.Terminal.Stdout, "Moved the state (serial %d, %d objects, each read back and compared) from %s to %s.\n",
		doc.Serial+1, len(m.copied), m.From.At, m.To.At)
	return m.lead(ctx)
}

// key takes the stack's key along: without it nothing that is sealed opens.
func (m *Migration) key(ctx context.Context) error {
	secrets, err := m.From.Keys.Open(ctx) // without former ones: see underLease
	if err == nil {
		err = m.To.Keys.Provide(ctx, secrets.Current)
	}
	if err != nil {
		return fmt.Errorf("take the stack's key along: %w", err)
	}
	return nil
}

// close notes in the state that is left behind where it went.
func (m *Migration) close(doc *state.Document) (*state.Document, error) {
	if doc.Serial != m.doc.Serial {
		return nil, fmt.Errorf("the state changed meanwhile (serial %d, now %d); run the command again", m.doc.Serial, doc.Serial)
	}
	next := doc.Clone()
	next.MovedTo = string(m.To.At)
	return next, nil
}

// movedPrefixes are of all objects that move. Whatever else there is belongs to
// its place: the state and the lease, which are written anew; the key, which
// each place keeps in its way; other workspaces; and in a directory what this
// machine keeps there, its slices among that.
func movedPrefixes() []string {
	return []string{store.AssignPrefix, store.HostsPrefix, store.LogsPrefix, store.BundlesPrefix, store.ConfigurationsPrefix, store.JobsPrefix, store.NoticesKey, store.UsagePrefix, store.ProfilesPrefix, clusterkeys.AuthoritiesKey}
}

// copyAll copies every object, reads it back and compares.
func (m *Migration) copyAll(ctx context.Context) error {
	objects, err := m.From.Store.List(ctx, movedPrefixes()...)
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
	group.SetLimit(stack.Copiers)
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
func (m *Migration) clear(ctx context.Context, wanted map[string]bool) error {
	objects, err := m.To.Store.List(ctx, movedPrefixes()...)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if wanted[o.Key] {
			continue
		}
		if err := m.To.Store.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

func (m *Migration) copy(ctx context.Context, key string) (store.Generation, error) {
	if strings.HasPrefix(key, store.BundlesPrefix) && !bundle.IsIndex(key) {
		return 0, m.copyBlob(ctx, key)
	}
	object, err := m.From.Store.Get(ctx, key)
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
	generation, err := m.To.Store.Put(ctx, key, data, store.Any)
	if err != nil {
		return 0, err
	}
	back, err := m.To.Store.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(back.Data, data) {
		return 0, fmt.Errorf("%s gave back something else than was written (%d bytes, wrote %d); run the command again", m.To.At, len(back.Data), len(data))
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
func (m *Migration) copyBlob(ctx context.Context, key string) error {
	content, err := m.From.Store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := m.To.Store.Upload(ctx, key, content); err != nil {
		return err
	}
	left, err := m.From.Store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer left.Close()
	right, err := m.To.Store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer right.Close()
	same, err := sameContent(left, right)
	if err == nil && !same {
		err = fmt.Errorf("%s gave back something else than was written; run the command again", m.To.At)
	}
	return err
}

func sameContent(a, b io.Reader) (bool, error) {
	const piece = 1 << 20
	left, right := make([]byte, piece), make([]byte, piece)
	for {
		n, errA := io.ReadFull(a, left)
		k, errB := io.ReadFull(b, right)
		ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
		switch {
		case errA != nil && !ended(errA) || errB != nil && !ended(errB): // a read that failed says nothing of the content
			return false, errors.Join(errA, errB)
		case !bytes.Equal(left[:n], right[:k]) || ended(errA) != ended(errB):
			return false, nil
		case ended(errA):
			return true, nil
		}
	}
}
