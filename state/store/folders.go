package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Foldered is what a Store may offer besides: what is below a prefix at first
// sight, without listing every object there.
type Foldered interface {
	// Folders returns the names N, sorted, for which there are objects whose
	// keys start with prefix+N+"/". prefix is "" or ends in a slash. A name is
	// a candidate: what was just removed may still be among them.
	Folders(ctx context.Context, prefix string) ([]string, error)
}

var _ Foldered = (*Dir)(nil)

// AsFoldered unwraps a store by its Unwrap methods.
func AsFoldered(s Store) (Foldered, bool) { return behind[Foldered](s) }

// CheckFolder returns why a store must refuse to list the folders of a prefix.
func CheckFolder(prefix string) error {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return CheckPrefix(prefix)
	}
	return fmt.Errorf("prefix %q: it is to end in a slash", prefix)
}

// Folders returns the names of the directories below a prefix.
func (d *Dir) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := cmp.Or(CheckFolder(prefix), alive(ctx)); err != nil {
		return nil, fmt.Errorf("list folders of %s: %w", prefix, err)
	}
	entries, err := readFolder(d.path(prefix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list folders of %s: %w", prefix, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
