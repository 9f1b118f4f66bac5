package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
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

func workspaceDeleteCommand(a *app) *cobra.Command {
	var flags workspaceFlags
	var force bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a workspace with its state and logs",
		Long: `Remove a workspace with its state and logs. One that still has anything is refused
(fray destroy --workspace NAME takes it down first), and so is the current one.
With --force what runs in it runs on, and nothing looks after it any more.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, _, err := flags.site(a)
			if err != nil {
				return err
			}
			switch args[0] {
			case schema.DefaultWorkspace:
				return fmt.Errorf("workspace %q belongs to every configuration and cannot be deleted; fray destroy takes down what is in it", args[0])
			case at.workspace:
				return fmt.Errorf("workspace %q is the current one; select another one first, such as with fray workspace select %s", args[0], schema.DefaultWorkspace)
			}
			if err := validWorkspace(args[0]); err != nil {
				return err
			}
			at = at.in(args[0])
			at.chosenBy = "delete " + args[0]
			s, err := openStack(cmd.Context(), at, false)
			if err != nil {
				return err
			}
			d := &deletion{app: a, stack: s, force: force, wait: wait}
			return d.run(cmd.Context())
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "although its state still has something; what runs, runs on")
	cmd.Flags().DurationVar(&wait, "lease-timeout", 0, "how long to wait for somebody else who is changing the workspace")
	return cmd
}

// deletion removes a workspace. It is gone when its marker is, which goes last:
// interrupted, it may be run again.
type deletion struct {
	app   *app
	stack *stack
	force bool
	wait  time.Duration

	running int // slices that run on
}

func (d *deletion) run(ctx context.Context) error {
	lease, err := store.Acquire(ctx, d.stack.store, store.LeaseConfig{Command: commandLine(), Wait: d.wait})
	if err != nil {
		return d.stack.naming(err)
	}
	err = d.empty(lease.Context())
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err = errors.Join(err, lease.Release(ended)); err != nil {
		return err
	}
	s := d.stack.store
	for _, key := range []string{store.LeaseKey, workspaceKey} {
		if err := s.Delete(ended, key); err != nil {
			return fmt.Errorf("delete workspace %q: %w; run the command again", d.stack.workspace, err)
		}
	}
	if d.running == 0 {
		if err := os.RemoveAll(d.stack.root); err != nil {
			d.app.warn(fmt.Sprintf("what is left of it in %s could not be removed: %v", d.stack.root, err))
		}
	}
	fmt.Fprintf(d.app.stdout, "Workspace %q is deleted.\n", d.stack.workspace)
	if d.running > 0 {
		d.app.warn(fmt.Sprintf("%s, and nobody looks after them; to take them up again: fray workspace new %s, then fray state rebuild",
			counted(d.running, "slice runs on", "slices run on"), d.stack.workspace))
	}
	return nil
}

// empty removes every object but the lease and the marker.
func (d *deletion) empty(ctx context.Context) error {
	doc, err := d.state(ctx)
	if err != nil && !d.force {
		return err
	}
	d.running = d.slices()
	if doc != nil {
		d.running = max(d.running, len(doc.Slices)+len(doc.Disowned))
		if has := holdings(doc); has != "" && !d.force {
			return fmt.Errorf("workspace %q still has %s; take it down first: fray destroy --workspace=%s; or use --force to forget it, and what runs, runs on",
				d.stack.workspace, has, d.stack.workspace)
		}
	}
	objects, err := d.stack.store.List(ctx, "")
	if err != nil {
		return fmt.Errorf("delete workspace %q: %w", d.stack.workspace, err)
	}
	for _, o := range objects {
		switch {
		case o.Key == store.LeaseKey, o.Key == workspaceKey:
			continue
		case d.running > 0 && keptFor(o.Key):
			continue
		}
		if err := d.stack.store.Delete(ctx, o.Key); err != nil {
			return fmt.Errorf("delete workspace %q: %w; run the command again", d.stack.workspace, err)
		}
	}
	return nil
}

// state is that of the workspace, nil if it has none.
func (d *deletion) state(ctx context.Context) (*state.Document, error) {
	_, err := d.stack.store.Get(ctx, store.StateKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	var doc *state.Document
	if err == nil {
		doc, _, err = d.stack.present(ctx)
	}
	if err != nil || doc == nil {
		unread := fmt.Errorf("the state of workspace %q cannot be read, so nobody knows what runs in it; --force deletes it all the same", d.stack.workspace)
		return nil, errors.Join(unread, err)
	}
	return doc, nil
}

// holdings says what a state still has, "" if nothing.
func holdings(doc *state.Document) string {
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, counted(n, one, many))
		}
	}
	add(len(doc.Jobs), "job", "jobs")
	add(len(doc.Resources), "other resource", "other resources")
	add(len(doc.Slices), "slice", "slices")
	add(len(doc.Disowned), "disowned slice (fray state import takes it up)", "disowned slices (fray state import takes them up)")
	return strings.Join(parts, ", ")
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// slices counts the slices of the workspace on this machine.
func (d *deletion) slices() int {
	entries, err := os.ReadDir(filepath.Join(d.stack.root, slicesFolder, "slices"))
	if err != nil {
		return 0
	}
	return len(entries)
}
