package modules

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// entry is one of an archive in a test.
type entry struct {
	name string
	kind byte // 0: a file
	text string
	link string
	mode int64
}

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: max(e.mode, 0o644), Size: int64(len(e.text))}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if e.kind == tar.TypeXGlobalHeader {
			h = &tar.Header{Name: e.name, Typeflag: e.kind, PAXRecords: map[string]string{"comment": "of git"}}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstd.MinWindowSize))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tree is what is below a directory: content by path, with * where executable.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if info.Mode()&0o100 != 0 {
			name += "*"
		}
		data, err := os.ReadFile(path)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	data := tarball(t,
		entry{name: "pax_global_header", kind: tar.TypeXGlobalHeader},
		entry{name: "./", kind: tar.TypeDir},
		entry{name: "./main.hcl", text: "main"},
		entry{name: "deep/down/run.sh", text: "run", mode: 0o755},
		entry{name: "deep/", kind: tar.TypeDir},
		entry{name: "deep/x.hcl", text: "x", mode: 0o666},
	)
	want := map[string]string{"main.hcl": "main", "deep/down/run.sh*": "run", "deep/x.hcl": "x"}
	for file, packed := range map[string][]byte{"a.tar.gz": gzipped(t, data), "a.tar.zst": zstandard(t, data)} {
		dir := t.TempDir()
		if err := unpack(bytes.NewReader(packed), file, dir, usualLimits()); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if info, err := os.Stat(filepath.Join(dir, "deep/x.hcl")); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s: mode %v, %v, want a read-only one", file, info.Mode(), err)
		}
	}
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	small := limits{archive: 1 << 20, files: 1000, entries: 5}
	file := func(name string) entry { return entry{name: name, text: "x"} }
	tests := []struct {
		name    string
		entries []entry
		want    string // of the error, which names the entry
	}{
		{"upwards", []entry{file("../escape")}, `"../escape": the path leads out`},
		{"upwards from within", []entry{file("a/../../escape")}, `"a/../../escape": the path leads out`},
		{"absolute", []entry{file("/escape")}, `"/escape": the path leads out`},
		{"directory upwards", []entry{{name: "../escape/", kind: tar.TypeDir}}, `"../escape/": the path leads out`},
		{"symbolic link", []entry{{name: "l", kind: tar.TypeSymlink, link: "/etc"}}, `"l": it is a link to "/etc"`},
		{"symbolic link within", []entry{{name: "l", kind: tar.TypeSymlink, link: "main.hcl"}}, `"l": it is a link to "main.hcl"`},
		{"hard link", []entry{{name: "l", kind: tar.TypeLink, link: "/etc/passwd"}}, `"l": it is a link to "/etc/passwd"`},
		{"device", []entry{{name: "null", kind: tar.TypeChar}}, `"null": it is a device`},
		{"pipe", []entry{{name: "p", kind: tar.TypeFifo}}, `"p": it is a device, a pipe`},
		{"twice", []entry{file("a"), file("a")}, `"a": "a" is in the archive twice`},
		{"twice, written otherwise", []entry{file("a"), file("./b/../a")}, `"./b/../a": "a" is in the archive twice`},
		{"case", []entry{file("Main.hcl"), file("main.hcl")}, `"main.hcl": "Main.hcl" and "main.hcl" are one file`},
		{"case of a directory", []entry{file("A/x"), file("a/y")}, `"a/y": "A" and "a" are one file`},
		{"file as a directory", []entry{file("a"), file("a/b")}, `"a/b": "a" is in the archive twice`},
		{"directory as a file", []entry{file("a/b"), file("a")}, `"a": "a" is in the archive twice`},
		{"top as a file", []entry{file(".")}, `".": `},
		{"backslash", []entry{file(`a\..\b`)}, "has a backslash"},
		{"control character", []entry{file("a\x1b[2J")}, "control characters"},
		{"many entries", []entry{file("1"), file("2"), file("3"), file("4"), file("5"), file("6")}, `"6": it has more than 5 entries`},
		{"many directories", []entry{file("1/2/3/4/5/6/7")}, "more than 5 directories"},
		{"many bytes", []entry{file("a"), {name: "b", text: strings.Repeat("x", 1000)}}, `"b": the files up to this one`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			dir := filepath.Join(outer, "in")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			err := unpack(bytes.NewReader(zstandard(t, tarball(t, test.entries...))), "a.tar.zst", dir, small)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if left, err := os.ReadDir(outer); err != nil || len(left) != 1 {
				t.Errorf("beside the directory there is %v (%v)", left, err)
			}
		})
	}
}

// What never becomes an entry is bounded, too.
func TestBombs(t *testing.T) {
	t.Parallel()
	whole := tarball(t, entry{name: "a", text: "x"})
	endless := bytes.Repeat(tarball(t, entry{name: "h", kind: tar.TypeXGlobalHeader})[:1024], 100)
	tests := []struct {
		name, file string
		data       []byte
		want       string
	}{
		{"headers that hold nothing", "a.tar.zst", zstandard(t, endless), "more than 5 entries"},
		{"one long header", "a.tar.gz", gzipped(t, longHeader(t, 900<<10)), "more than an archive may hold"},
		{"cut off", "a.tar.gz", gzipped(t, whole)[:40], "it is damaged, or no archive"},
		{"another kind", "a.tar.gz", zstandard(t, whole), "not of the kind that its ending names"},
		{"no archive", "a.tar.zst", zstandard(t, []byte(strings.Repeat("hello", 1000))), "it is damaged, or no archive"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := unpack(bytes.NewReader(test.data), test.file, t.TempDir(), limits{archive: 1 << 20, files: 1000, entries: 5})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func longHeader(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Name: "a", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"FRAY.x": strings.Repeat("x", size)}}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever an archive holds, it stays below its directory, in its limits, and
// can be hashed.
func FuzzUnpack(f *testing.F) {
	f.Add(tarball(f, entry{name: "a/b", text: "x"}, entry{name: "a/", kind: tar.TypeDir}))
	f.Add(tarball(f, entry{name: "../a", text: "x"}))
	f.Add(tarball(f, entry{name: "a", kind: tar.TypeSymlink, link: ".."}, entry{name: "a/b", text: "x"}))
	f.Add(tarball(f, entry{name: "h", kind: tar.TypeXGlobalHeader}))
	f.Fuzz(func(t *testing.T, data []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := extractAll(bytes.NewReader(data), dir, limits{archive: 1 << 20, files: 1 << 16, entries: 50})
		if left, readErr := os.ReadDir(outer); readErr != nil || len(left) != 1 {
			t.Fatalf("beside the directory there is %v (%v)", left, readErr)
		}
		if err != nil {
			return
		}
		if _, err := filesHash(dir); err != nil {
			t.Errorf("what was unpacked has no hash: %v", err)
		}
		total := 0
		for _, text := range tree(t, dir) {
			total += len(text)
		}
		if total > 1<<16 {
			t.Errorf("%d bytes were unpacked", total)
		}
	})
}
