package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// building tells that the task's files are being prepared.
func (t *task) building() {
	t.set(func(r *state.TaskReport) { r.State = schema.TaskBuilding })
}

// prepareFiles makes the working directory and the uv environment.
func (t *task) prepareFiles(ctx context.Context) error {
	t.in.WorkDir = t.agent.WorkDir
	if sum := t.run.Spec.Environment.Bundle; sum != "" {
		dir, err := t.unpackBundle(ctx, sum)
		if err != nil {
			return fmt.Errorf("prepare project: %w", err)
		}
		t.in.WorkDir = dir
	}
	if err := t.prepareCallable(ctx); err != nil {
		return err
	}
	if info, err := os.Stat(t.in.WorkDir); err != nil || !info.IsDir() {
		return fmt.Errorf("prepare project: there is no directory %s to run in", t.in.WorkDir)
	}
	if t.run.Spec.Environment.UV == nil {
		return nil
	}
	if t.inContainer() {
		return &endError{
			state:  schema.TaskUnschedulable,
			reason: "environment.uv is for tasks without environment.image; install what the project needs in the image",
		}
	}
	venv, err := t.prepareUV(ctx)
	t.in.Venv = venv
	return err
}

// unpackBundle returns the directory of a bundle, which is fetched and unpacked
// once for a host.
func (t *task) unpackBundle(ctx context.Context, sum string) (string, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%q is not a bundle's SHA-256", sum)
	}
	bundles := t.agent.dir.file(bundlesDir)
	dir := filepath.Join(bundles, sum)
	_, err := os.Stat(dir)
	found := err == nil
	if found && treeIntact(dir) {
		return dir, nil
	}
	if found {
		t.agent.Log.Warn("a bundle on this host is damaged, as after a power cut; what is damaged is fetched again", "bundle", sum)
	}
	t.building()
	if err := os.MkdirAll(bundles, 0o700); err != nil {
		return "", err
	}
	if err := removeAll(filepath.Join(bundles, ".new-*")); err != nil {
		return "", err // left by an agent that died
	}
	temp, err := os.MkdirTemp(bundles, ".new-*")
	if err != nil {
		return "", err
	}
	err = t.fetch(ctx, sum, temp)
	switch {
	case err != nil:
	case found:
		err = errors.Join(realTreeOps().mendTree(temp, dir), os.RemoveAll(temp))
	default:
		err = realTreeOps().place(temp, dir)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(temp))
	}
	return dir, nil
}

// fetch unpacks a bundle. Parts of it that are here already, from an agent that
// died, need not come again; those of other bundles never will be needed.
func (t *task) fetch(ctx context.Context, sum, dir string) error {
	const prefix = ".parts-"
	bundles := t.agent.dir.file(bundlesDir)
	entries, err := os.ReadDir(bundles)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && e.Name() != prefix+sum {
			err = errors.Join(err, os.RemoveAll(filepath.Join(bundles, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return bundle.Fetcher{Store: t.agent.Store, Keep: filepath.Join(bundles, prefix+sum)}.Fetch(ctx, sum, dir)
}

func removeAll(pattern string) error {
	found, err := filepath.Glob(pattern)
	for _, path := range found {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}
