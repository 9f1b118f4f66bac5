package modules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someHash = "sha256:4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce"

func TestLockIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	want := lock{
		{"gs://acme/b", "1.0.0", []string{"any"}, someHash, someHash},
		{"gs://acme/a", "1.10.0", []string{"~> 1.0", "~> 1.9"}, someHash, someHash},
		{"gs://acme/a", "1.9.0", []string{"1.9.0"}, someHash, someHash},
	}
	want.sort()
	if err := writeLock(root, want); err != nil {
		t.Fatal(err)
	}
	got, err := readLock(root)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	text, err := os.ReadFile(filepath.Join(root, LockFile))
	if err != nil {
		t.Fatal(err)
	}
	wantText := lockHeader + `
module "gs://acme/a" {
  version     = "1.9.0"
  constraints = ["1.9.0"]
  archive     = "` + someHash + `"
  files       = "` + someHash + `"
}
`
	if !strings.HasPrefix(string(text), wantText) {
		t.Errorf("the lock file is\n%s\nwant it to begin with\n%s", text, wantText)
	}
	if err := writeLock(root, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, LockFile)); !os.IsNotExist(err) {
		t.Errorf("an empty lock leaves a file behind (%v)", err)
	}
}

func TestDamagedLockIsRejected(t *testing.T) {
	t.Parallel()
	block := func(source, version, hash string) string {
		return `module "` + source + `" {
  version     = "` + version + `"
  constraints = []
  archive     = "` + hash + `"
  files       = "` + hash + `"
}
`
	}
	tests := []struct{ name, text, want string }{
		{"merge conflict", "<<<<<<< ours\n" + block("gs://acme/a", "1.0.0", someHash), ".fray.lock.hcl:1"},
		{"attribute missing", `module "gs://acme/a" { version = "1.0.0" }`, "archive"},
		{"another block", `job "x" {}`, "job"},
		{"a path", block("gs://acme/../a", "1.0.0", someHash), "shortest way"},
		{"a directory within", block("gs://acme/a//b", "1.0.0", someHash), "directory within the archive"},
		{"version that is a path", block("gs://acme/a", "1.0.0/../..", someHash), "is not a version"},
		{"hash that is a path", block("gs://acme/a", "1.0.0", "sha256:../../.."), "64 hexadecimal digits"},
		{"twice", block("gs://acme/a", "1.0.0", someHash) + block("gs://acme/a", "1.0.0", someHash), "stands twice"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.WriteFile(filepath.Join(root, LockFile), []byte(test.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := readLock(root)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "run fray get") {
				t.Errorf("error %v, want one with %q and a remedy", err, test.want)
			}
		})
	}
}

// A call keeps the version that was chosen for it when another call brings a
// newer one into the lock.
func TestServing(t *testing.T) {
	t.Parallel()
	l := lock{
		{"gs://acme/a", "1.0.0", []string{"any", "~> 1.0"}, someHash, someHash},
		{"gs://acme/a", "2.0.0", []string{"~> 2.0"}, someHash, someHash},
		{"gs://acme/b", "3.0.0", []string{"~> 9.0"}, someHash, someHash},
	}
	tests := []struct{ name, source, constraint, want string }{
		{"chosen for it", "gs://acme/a", "", "1.0.0"},
		{"chosen for another", "gs://acme/a", ">= 1.0", "2.0.0"},
		{"not allowed", "gs://acme/a", "~> 3.0", ""},
		{"written by hand and not allowed", "gs://acme/b", "~> 9.0", ""},
		{"another source", "gs://acme/c", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := parseConstraint(test.constraint)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := l.serving(test.source, c); got.Version != test.want || ok != (test.want != "") {
				t.Errorf("got %q, %v, want %q", got.Version, ok, test.want)
			}
		})
	}
}
