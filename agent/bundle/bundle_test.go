package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// tree writes files given by path and content; a path that ends in ".sh" is executable.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(t *testing.T, dir string) (string, []string, []byte) {
	t.Helper()
	var b bytes.Buffer
	sum, files, err := Pack(dir, &b)
	if err != nil {
		t.Fatal(err)
	}
	return sum, files, b.Bytes()
}

func TestPackLeavesOutWhatIsIgnored(t *testing.T) {
	dir := tree(t, map[string]string{
		".gitignore":           "*.log\n/build/\n!keep.log\n# comment\nnotes.txt \ndocs/**/*.pdf\nlogs/\n!logs\n\\!odd\n{a,b}\n",
		"main.py":              "1",
		"a.log":                "",
		"keep.log":             "2",
		"build/x":              "",
		"sub/build/x":          "3",
		"sub/.gitignore":       "*.tmp\n!important.log\n/only-here\n",
		"sub/a.tmp":            "",
		"sub/important.log":    "4",
		"sub/deeper/only-here": "5",
		"sub/only-here":        "",
		"notes.txt":            "",
		"docs/a/b/c.pdf":       "",
		"docs/c.pdf":           "",
		"docs/c.md":            "6",
		"logs/x.log":           "",
		"logs/x.txt":           "7",
		"!odd":                 "",
		"a":                    "8",
		".git/config":          "",
		".venv/bin/python":     "",
		".fray/state.json":     "",
		"pkg/__pycache__/m":    "",
	})
	_, files, _ := packed(t, dir)
	want := []string{
		".gitignore", "a", "docs/c.md", "keep.log", "logs/x.txt", "main.py", "sub/.gitignore",
		"sub/build/x", "sub/deeper/only-here", "sub/important.log",
	}
	slices.Sort(files)
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("packed files (-want +got):\n%s", diff)
	}
}

// Git itself is the oracle for what a .gitignore file means.
func TestIgnoreRulesAreGits(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := tree(t, map[string]string{
		".gitignore": strings.Join([]string{
			"*.o", "/top", "mid/dle", "dir/", "**/any", "deep/**", "a/**/z", "!deep", "[abc].txt", "q?x",
			"*.keep", "!yes.keep", "sp\\ ace", "trail   ", "foo/*", "!foo/bar", "**/st/**", "x/**/", "[!d].md", "*",
			"!*/", "!*.o", "!*.txt", "!*.md", "!*x", "!any", "!top", "!dle", "!z", "!*.keep", "no.keep", "br[", "{m,n}",
		}, "\n"),
		"x.o": "", "top": "", "s/top": "", "mid/dle": "", "s/mid/dle": "", "dir": "", "s/dir/f.txt": "", "any": "", "p/q/any": "",
		"deep/f.md": "", "deep/g/h.md": "", "a/z": "", "a/b/z": "", "a/b/c/z": "", "a.txt": "", "d.txt": "", "qax": "", "q/x": "",
		"no.keep": "", "yes.keep": "", "sp ace": "", "trail": "", "foo/bar": "", "foo/baz.txt": "", "foo/qux/b.txt": "",
		"u/st/v.txt": "", "x/y/w.txt": "", "d.md": "", "e.md": "", "br[": "", "m": "", "{m,n}": "",
		"s/.gitignore": "!*.o\ntop\n/dir\n", "s/y.o": "", "s/t/y.o": "",
	})
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A", "."}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	cmd := exec.Command(git, "ls-files", "-z")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.Trim(string(out), "\x00"), "\x00")
	// A project that is part of a repository obeys the rules above it.
	wantBelow := []string{}
	for _, name := range want {
		if below, ok := strings.CutPrefix(name, "s/"); ok {
			wantBelow = append(wantBelow, below)
		}
	}
	for _, each := range []struct {
		dir  string
		want []string
	}{{dir, want}, {filepath.Join(dir, "s"), wantBelow}} {
		_, files, _ := packed(t, each.dir)
		slices.Sort(files)
		slices.Sort(each.want)
		if diff := cmp.Diff(each.want, files); diff != "" {
			t.Errorf("packed files of %s (-git +got):\n%s", each.dir, diff)
		}
	}
}

func TestSameFilesSameBytes(t *testing.T) {
	files := map[string]string{"a/b.py": strings.Repeat("x = 1\n", 50_000), "run.sh": "#!/bin/sh\n"}
	one, two := tree(t, files), tree(t, files)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(two, "run.sh"), later, later); err != nil {
		t.Fatal(err)
	}
	sum1, _, data1 := packed(t, one)
	sum2, _, data2 := packed(t, two)
	if sum1 != sum2 || !bytes.Equal(data1, data2) {
		t.Errorf("the same files gave %s and %s", sum1, sum2)
	}
	hash := sha256.Sum256(data1)
	if got := hex.EncodeToString(hash[:]); got != sum1 {
		t.Errorf("name is %s, SHA-256 of the blob is %s", sum1, got)
	}
	want := Manifest{Sum: sum1, Parts: []Part{{Sum: sum1, Size: int64(len(data1))}}}
	if got, err := Measure(one); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("manifest is %+v, %v, want %+v", got, err, want)
	}
	if err := os.Chmod(filepath.Join(two, "run.sh"), 0o600); err != nil {
		t.Fatal(err)
	}
	if sum, _, _ := packed(t, two); sum == sum1 {
		t.Error("the executable bit does not count")
	}
}

func TestUnpackGivesWhatWasPacked(t *testing.T) {
	dir := tree(t, map[string]string{"a/b.py": "b", "run.sh": "#!/bin/sh\n", "empty": ""})
	if err := os.Symlink("b.py", filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "run.sh"), filepath.Join(dir, "a", "absolute")); err != nil {
		t.Fatal(err)
	}
	sum, files, data := packed(t, dir)
	to := t.TempDir()
	if err := Unpack(bytes.NewReader(data), sum, to); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	if link, err := os.Readlink(filepath.Join(to, "a", "absolute")); err != nil || link != "../run.sh" {
		t.Errorf("absolute link is %q, %v", link, err)
	}
	if info, err := os.Stat(filepath.Join(to, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("run.sh is %v, %v, want it executable", info, err)
	}
	if got, err := Measure(to); err != nil || got.Sum == "" {
		t.Errorf("digest of the unpacked project: %v", err)
	}
	data[len(data)/2] ^= 1
	if err := Unpack(bytes.NewReader(data), sum, t.TempDir()); err == nil {
		t.Error("a damaged bundle was unpacked")
	}
}

func TestPackRefuses(t *testing.T) {
	outside := tree(t, map[string]string{"ok": ""})
	if err := os.Symlink("../../elsewhere", filepath.Join(outside, "escape")); err != nil {
		t.Fatal(err)
	}
	large := tree(t, map[string]string{"data/large.bin": strings.Repeat("x", 3000), "small": "y"})
	for _, test := range []struct {
		name string
		err  func() error
		want []string
	}{
		{"link out of the project", func() error { _, err := Measure(outside); return err }, []string{"escape", "outside"}},
		{"too large", func() error { _, err := packer{2000, usualCuts()}.measure(large); return err }, []string{"data/large.bin", ".gitignore", "1.953 KiB"}},
		{"no directory", func() error { _, err := Measure(filepath.Join(large, "small")); return err }, []string{"not a directory"}},
		{"nothing there", func() error { _, err := Measure(filepath.Join(large, "none")); return err }, []string{"none"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.err()
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is %q, want it to contain %q", err, part)
				}
			}
		})
	}
}

func TestUnpackRefusesToEscape(t *testing.T) {
	for _, test := range []struct {
		name    string
		headers []tar.Header
	}{
		{"parent", []tar.Header{{Name: "../evil", Typeflag: tar.TypeReg}}},
		{"absolute", []tar.Header{{Name: "/evil", Typeflag: tar.TypeReg}}},
		{"inner parent", []tar.Header{{Name: "a/../../evil", Typeflag: tar.TypeReg}}},
		{"link out", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../x"}}},
		{"absolute link", []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}}},
		{"through a link", []tar.Header{
			{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"},
			{Name: "b", Typeflag: tar.TypeSymlink, Linkname: "."},
			{Name: "a/../../evil", Typeflag: tar.TypeReg},
		}},
		{"device", []tar.Header{{Name: "null", Typeflag: tar.TypeChar}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			z, err := zstd.NewWriter(&b)
			if err != nil {
				t.Fatal(err)
			}
			w := tar.NewWriter(z)
			for _, h := range test.headers {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			hash := sha256.Sum256(b.Bytes())
			top := t.TempDir()
			dir := filepath.Join(top, "in")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := Unpack(&b, hex.EncodeToString(hash[:]), dir); err == nil {
				t.Error("it was unpacked")
			}
			if entries, _ := os.ReadDir(top); len(entries) != 1 {
				t.Errorf("there is %v beside the directory", entries)
			}
		})
	}
}
