package modules

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeTree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		mode := os.FileMode(0o644)
		name, executable := strings.CutSuffix(name, "*")
		if executable {
			mode = 0o755
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesHash(t *testing.T) {
	t.Parallel()
	base := map[string]string{"main.hcl": "a", "sub/x.hcl": "b", "sub.hcl": "c"}
	hashOf := func(files map[string]string) string {
		dir := t.TempDir()
		writeTree(t, dir, files)
		sum, err := filesHash(dir)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	// What is in lock files must stay what it is.
	const want = "sha256:31d46114d2c148e87338e8406d933c4453826f7c937dbd8cdcdb136f696990dd"
	if got := hashOf(base); got != want {
		t.Errorf("the hash is %s, and lock files have %s", got, want)
	}
	tests := map[string]map[string]string{
		"content":    {"main.hcl": "A", "sub/x.hcl": "b", "sub.hcl": "c"},
		"name":       {"main2.hcl": "a", "sub/x.hcl": "b", "sub.hcl": "c"},
		"place":      {"main.hcl": "a", "x.hcl": "b", "sub.hcl": "c"},
		"executable": {"main.hcl*": "a", "sub/x.hcl": "b", "sub.hcl": "c"},
		"added":      {"main.hcl": "a", "sub/x.hcl": "b", "sub.hcl": "c", ".hidden": ""},
		"removed":    {"main.hcl": "a", "sub/x.hcl": "b"},
		"exchanged":  {"main.hcl": "b", "sub/x.hcl": "a", "sub.hcl": "c"},
	}
	for name, files := range tests {
		if hashOf(files) == want {
			t.Errorf("%s: the hash is the same", name)
		}
	}
}

func TestLinkHasNoHash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "main.hcl")); err != nil {
		t.Fatal(err)
	}
	if _, err := filesHash(dir); err == nil || !strings.Contains(err.Error(), "main.hcl is not a file") {
		t.Errorf("error %v, want one that names the link", err)
	}
}

// Every reading of a configuration hashes what is installed: a usual module has
// ten files, and the largest archives 10,000.
func BenchmarkFilesHash(b *testing.B) {
	for _, files := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir := b.TempDir()
			tree := map[string]string{}
			for i := range files {
				tree[fmt.Sprintf("%d/%d.hcl", i%100, i)] = strings.Repeat("x", 2000)
			}
			writeTree(b, dir, tree)
			for b.Loop() {
				if _, err := filesHash(dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
