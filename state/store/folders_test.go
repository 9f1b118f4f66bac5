package store_test

import (
	"slices"
	"testing"
)

func TestDirFolders(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	for _, key := range []string{"workspaces/b/state.json", "workspaces/a/x/y.json", "workspaces/file.json", "other/c.json"} {
		put(t, d, key, "x")
	}
	for prefix, want := range map[string][]string{
		"":                {"other", "workspaces"},
		"workspaces/":     {"a", "b"},
		"workspaces/a/":   {"x"},
		"workspaces/b/":   nil,
		"absent/deeper/":  nil,
		"workspaces/a/x/": nil,
	} {
		got, err := d.Folders(t.Context(), prefix)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("folders of %q = %q, %v; want %q", prefix, got, err, want)
		}
	}
	for _, prefix := range []string{"workspaces", "../", "/", ".tmp/"} {
		if got, err := d.Folders(t.Context(), prefix); err == nil {
			t.Errorf("folders of %q = %q, want an error", prefix, got)
		}
	}
}
