package surgery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// slicesFolder is where this machine's slices of a stack are.
const slicesFolder = "local"

// keptFor reports whether slices that run on need an object: by these they
// report, and are found again.
func keptFor(key string) bool {
	switch key {
	case "secret.key", keyring.ObjectKey:
		return true
	}
	for _, prefix := range []string{slicesFolder + "/", store.AssignPrefix, store.HostsPrefix} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// deletedAt is the place of an object in the order in which a workspace is deleted. While the state
// is there, so is what it is read with: a state without its journal reads as an older one.
func deletedAt(key string) int {
	switch {
	case key == store.StateKey:
		return 1
	case key == "secret.key", key == keyring.ObjectKey, strings.HasPrefix(key, store.JournalPrefix):
		return 2
	}
	return 0
}

// Deletion removes a workspace. It is gone when its marker is, which goes last:
// interrupted, it may be run again.
type Deletion struct {
	Terminal *terminal.Terminal
	Stack    *stack.Stack
	Force    bool
	Wait     time.Duration

	running int // slices that run on
}

// Run deletes the workspace, its slices and its state.
func (d *Deletion) Run(ctx context.Context) error {
	lease, err := store.Acquire(ctx, d.Stack.Store, store.LeaseConfig{Command: stack.CommandLine(), Wait: d.Wait})
	if err != nil {
		return d.Stack.WithWorkspace(err)
	}
	err = d.empty(lease.Context())
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err = errors.Join(err, lease.Release(ended)); err != nil {
		return err
	}
	s := d.Stack.Store
	for _, key := range []string{store.LeaseKey, stack.WorkspaceKey} {
		if err := s.Delete(ended, key); err != nil {
			return fmt.Errorf("delete workspace %q: %w; run the command again", d.Stack.Workspace, err)
		}
	}
	if d.running == 0 {
		if err := os.RemoveAll(d.Stack.Root); err != nil {
			d.Terminal.Warn(fmt.Sprintf("what is left of it in %s could not be removed: %v", d.Stack.Root, err))
		}
	}
	fmt.Fprintf(d.Terminal.Stdout, "Workspace %q is deleted.\n", d.Stack.Workspace)
	if d.running > 0 {
		d.Terminal.Warn(fmt.Sprintf("%s unmanaged; to take them over again: fray workspace new %s, then fray state rebuild",
			terminal.Counted(d.running, "slice keeps running", "slices keep running"), d.Stack.Workspace))
	}
	return nil
}

// empty removes every object but the lease and the marker.
func (d *Deletion) empty(ctx context.Context) error {
	doc, err := d.state(ctx)
	if err != nil && !d.Force {
		return err
	}
	d.running = d.slices()
	if doc != nil {
		d.running = max(d.running, len(doc.Slices)+len(doc.Unmanaged))
		if has := holdings(doc); has != "" && !d.Force {
			return fmt.Errorf("workspace %q still has %s; take it down first: fray destroy --workspace=%s; or use --force to forget it, and what runs, runs on",
				d.Stack.Workspace, has, d.Stack.Workspace)
		}
	}
	objects, err := d.Stack.Store.List(ctx, "")
	if err != nil {
		return fmt.Errorf("delete workspace %q: %w", d.Stack.Workspace, err)
	}
	slices.SortStableFunc(objects, func(a, b store.Attrs) int { return cmp.Compare(deletedAt(a.Key), deletedAt(b.Key)) })
	if doc == nil {
		if err := d.withoutState(objects); err != nil {
			return err
		}
	}
	for _, o := range objects {
		switch {
		case o.Key == store.LeaseKey, o.Key == stack.WorkspaceKey:
			continue
		case d.running > 0 && keptFor(o.Key):
			continue
		}
		if err := d.Stack.Store.Delete(ctx, o.Key); err != nil {
			return fmt.Errorf("delete workspace %q: %w; run the command again", d.Stack.Workspace, err)
		}
	}
	return nil
}

// withoutState finds the slices that have mailboxes in a workspace without a state, which is not
// known to have none: the state was lost, or a deletion was interrupted. What runs there must be found again.
func (d *Deletion) withoutState(objects []store.Attrs) error {
	mailboxes := map[string]bool{}
	for _, o := range objects {
		if name, assigned := strings.CutPrefix(o.Key, store.AssignPrefix); assigned {
			mailboxes[name] = true
		}
	}
	d.running = max(d.running, len(mailboxes))
	if len(mailboxes) > 0 && !d.Force {
		return fmt.Errorf("workspace %q has no state, and %s may run in it: fray state rebuild finds out; or use --force to forget it, and what runs, runs on",
			d.Stack.Workspace, terminal.Counted(len(mailboxes), "slice", "slices"))
	}
	return nil
}

// state is that of the workspace, nil if it has none.
func (d *Deletion) state(ctx context.Context) (*state.Document, error) {
	_, err := d.Stack.Store.Get(ctx, store.StateKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	var doc *state.Document
	if err == nil {
		doc, _, err = d.Stack.Present(ctx)
	}
	if err != nil || doc == nil {
		unread := fmt.Errorf("the state of workspace %q cannot be read, so it is not known what runs in it; --force deletes it all the same", d.Stack.Workspace)
		return nil, errors.Join(unread, err)
	}
	return doc, nil
}

// holdings reports what a state still has, "" if nothing.
func holdings(doc *state.Document) string {
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, terminal.Counted(n, one, many))
		}
	}
	add(len(doc.Jobs), "job", "jobs")
	add(len(doc.Resources), "other resource", "other resources")
	add(len(doc.Slices), "slice", "slices")
	add(len(doc.Unmanaged), "unmanaged slice (fray state import takes it over)", "unmanaged slices (fray state import takes them over)")
	return strings.Join(parts, ", ")
}

// slices counts the slices of the workspace on this machine.
func (d *Deletion) slices() int {
	entries, err := os.ReadDir(filepath.Join(d.Stack.Root, slicesFolder, "slices"))
	if err != nil {
		return 0
	}
	return len(entries)
}
