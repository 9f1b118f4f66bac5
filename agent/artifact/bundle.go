package artifact

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/tree"
	"github.com/fray-ml/fray/state/store"
)

// Fetcher brings what tasks need from a store to one host.
type Fetcher struct {
	Store    store.Store
	Dir      *hostdir.Dir
	Log      *slog.Logger
	Building func() // reports that it takes time
}

// Bundle returns the directory of a bundle, which is fetched and unpacked
// once for a host.
func (f Fetcher) Bundle(ctx context.Context, sum string) (string, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%q is not a bundle's SHA-256", sum)
	}
	bundles := f.Dir.File(hostdir.BundlesDir)
	dir := filepath.Join(bundles, sum)
	_, err := os.Stat(dir)
	found := err == nil
	if found && tree.Intact(dir) {
		return dir, nil
	}
	if found {
		f.Log.Warn("a bundle on this host is damaged, as after a power cut; what is damaged is fetched again", "bundle", sum)
	}
	f.Building()
	if err := os.MkdirAll(bundles, 0o700); err != nil {
		return "", err
	}
	if err := hostdir.RemoveAll(filepath.Join(bundles, ".new-*")); err != nil {
		return "", err // left by an agent that died
	}
	temp, err := os.MkdirTemp(bundles, ".new-*")
	if err != nil {
		return "", err
	}
	err = f.unpack(ctx, sum, temp)
	switch {
	case err != nil:
	case found:
		err = errors.Join(tree.Repair(temp, dir), os.RemoveAll(temp))
	default:
		err = tree.Place(temp, dir)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(temp))
	}
	return dir, nil
}

// unpack fetches and unpacks a bundle. Parts of it that are here already, from an agent that
// died, need not come again; those of other bundles never will be needed.
func (f Fetcher) unpack(ctx context.Context, sum, dir string) error {
	const prefix = ".parts-"
	bundles := f.Dir.File(hostdir.BundlesDir)
	entries, err := os.ReadDir(bundles)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && e.Name() != prefix+sum {
			err = errors.Join(err, os.RemoveAll(filepath.Join(bundles, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return bundle.Fetcher{Store: f.Store, Keep: filepath.Join(bundles, prefix+sum)}.Fetch(ctx, sum, dir)
}
