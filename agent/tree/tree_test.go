package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
	"github.com/fray-ml/fray/agent/tree/treetest"
)

// What gets a trusted name is on the disk before: every file, every directory after
// what is in it, the name, and the directory that holds the name, in this order.
func TestTreeIsSyncedBeforeItIsNamed(t *testing.T) {
	root := t.TempDir()
	temp, dir := filepath.Join(root, "temp"), filepath.Join(root, "tree")
	treetest.Plant(t, temp, map[string]string{"a": "1", "d/b": "2", "d/e/c": "3"})
	var did []string
	ops := ops{
		sync: func(path string) error {
			did = append(did, "sync "+strings.TrimPrefix(path, root))
			return nil
		},
		rename: func(from, to string) error {
			if _, err := readContents(dir); err != nil {
				t.Errorf("it is named before its record is written: %v", err)
			}
			did = append(did, "rename "+strings.TrimPrefix(from, root)+" "+strings.TrimPrefix(to, root))
			return os.Rename(from, to)
		},
	}
	if err := ops.place(temp, dir); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sync /temp/a", "sync /temp/d/b", "sync /temp/d/e/c", "sync /temp/d/e", "sync /temp/d", "sync /temp",
		"rename /temp /tree", "sync ",
	}
	if !slices.Equal(did, want) {
		t.Errorf("got\n%q\nwant\n%q", did, want)
	}
	if !Intact(dir) || !Whole(dir) {
		t.Error("a tree is not whole as it was made")
	}
}

func TestTreeAfterAPowerCut(t *testing.T) {
	for name, c := range map[string]struct {
		harm  func(t *testing.T, file string)
		whole bool
	}{
		"truncated": {func(t *testing.T, file string) { treetest.CutPower(t, file, nil) }, false},
		"zeros":     {func(t *testing.T, file string) { treetest.CutPower(t, file, make([]byte, 5)) }, false},
		"lost": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, false},
		"changed by a program": {func(t *testing.T, file string) {
			treetest.CutPower(t, file, []byte("other"))
			later := time.Now().Add(time.Second)
			if err := os.Chtimes(file, later, later); err != nil {
				t.Fatal(err)
			}
		}, true},
		"more beside it": {func(t *testing.T, file string) { treetest.Plant(t, filepath.Dir(file), map[string]string{"more": "x"}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "tree")
			treetest.Plant(t, dir, map[string]string{"d/file": "whole", "d/other": "x"})
			if err := disk().seal(dir, recordOf(dir)); err != nil {
				t.Fatal(err)
			}
			c.harm(t, filepath.Join(dir, "d/file"))
			if process.BootID() != "" && !Whole(dir) {
				t.Error("a tree that was synced is read again although the machine was not booted")
			}
			were, err := readContents(dir)
			if err != nil {
				t.Fatal(err)
			}
			were.Boot = "another"
			if err := record.WriteJSON(recordOf(dir), were); err != nil {
				t.Fatal(err)
			}
			if Intact(dir) != c.whole || Whole(dir) != c.whole {
				t.Errorf("whole: %v, %v; want %v", Intact(dir), Whole(dir), c.whole)
			}
		})
	}
}
