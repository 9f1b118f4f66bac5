package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// tiny packs a few hundred kilobytes into a dozen parts.
func tiny() packer {
	return packer{limit: MaxSize, cuts: cuts{min: 16 << 10, max: 64 << 10, bits: 14}}
}

// noise does not compress, and is the same for the same seed.
func noise(seed byte, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// sources is a project of n files of a few kilobytes.
func sources(t *testing.T, n int) string {
	t.Helper()
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("pkg%d/file%03d.py", i%7, i)] = hex.EncodeToString(noise(byte(i), 1000+i*7%3000))
	}
	return tree(t, files)
}

func measured(t *testing.T, p packer, dir string) Manifest {
	t.Helper()
	m, err := p.measure(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Jobs are known by the digests of their projects: one that changes with fray
// would restart them.
func TestDigestsStayWhatTheyWere(t *testing.T) {
	small := tree(t, map[string]string{"main.py": "print(1)\n", "lib/util.py": "x = 1\n", "run.sh": "#!/bin/sh\n"})
	const want = "31e94d1b081aeb59ef74a3c007c61bd2d98d2b4b94d7288c8581d362f2b6008d"
	if got := measured(t, usualPacker(), small).Sum; got != want {
		t.Errorf("digest of a small project is %s, was %s", got, want)
	}
	for _, test := range []struct {
		name string
		size int
		one  bool
	}{
		{"empty", 0, true},
		{"small", 1000, true},
		{"as large as one part may be for certain", 8<<20 - 4096, true},
		{"larger than one part can be", 16 << 20, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "data"), noise(1, test.size), 0o600); err != nil {
				t.Fatal(err)
			}
			sum := sha256.New()
			stream, err := zstd.NewWriter(sum, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := usualPacker().archive(dir, stream); err != nil {
				t.Fatal(err)
			}
			m := measured(t, usualPacker(), dir)
			if same := m.Sum == hex.EncodeToString(sum.Sum(nil)); same != test.one || (len(m.Parts) == 1) != test.one {
				t.Errorf("it has %d parts, and the digest of one stream is its own: %t; want one part: %t", len(m.Parts), same, test.one)
			}
		})
	}
}

func TestCutsStayWhereTheyWere(t *testing.T) {
	data := noise(7, 80<<20)
	var got []int
	var s *splitter
	s = newSplitter(usualCuts(), func([]byte) error {
		got = append(got, s.size)
		return nil
	})
	if _, err := s.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := []int{16777216, 11806322, 10633389, 14880345, 8450737, 12475617, 8862454}
	if !slices.Equal(got, want) {
		t.Errorf("parts are of %v bytes, were of %v", got, want)
	}
}

// However an archive arrives, its parts are the same, and together they are it.
func TestPartsFollowFromContent(t *testing.T) {
	data := slices.Concat(noise(1, 300<<10), bytes.Repeat([]byte("abc"), 100<<10), make([]byte, 200<<10), noise(2, 70<<10))
	var first [][]byte
	for _, step := range []int{len(data), 1, 63, 1000, 16 << 10, 64 << 10} {
		var parts [][]byte
		s := newSplitter(tiny().cuts, func(frame []byte) error {
			parts = append(parts, bytes.Clone(frame))
			return nil
		})
		for piece := range slices.Chunk(data, step) {
			if n, err := s.Write(piece); err != nil || n != len(piece) {
				t.Fatalf("step %d: wrote %d of %d, %v", step, n, len(piece), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = parts
		}
		if !slices.EqualFunc(parts, first, bytes.Equal) {
			t.Errorf("in steps of %d bytes it has other parts than in one", step)
		}
	}
	if len(first) < 10 {
		t.Errorf("there are %d parts, want many", len(first))
	}
	whole, err := zstd.NewReader(bytes.NewReader(bytes.Join(first, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if back, err := io.ReadAll(whole); err != nil || !bytes.Equal(back, data) {
		t.Errorf("the parts together are not what was cut (%v)", err)
	}
}

func TestSmallChangesChangeFewParts(t *testing.T) {
	change := func(name string, edit func([]byte) []byte) func(string) error {
		return func(dir string) error {
			file := filepath.Join(dir, name)
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, edit(data), 0o600)
			}
			return err
		}
	}
	for _, test := range []struct {
		name string
		edit func(dir string) error
	}{
		{"a byte of a file", change("pkg0/file007.py", func(b []byte) []byte { b[100] ^= 1; return b })},
		{"a file grows", change("pkg3/file101.py", func(b []byte) []byte { return append(b, "more"...) })},
		{"a new first file", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "aaa.py"), noise(200, 5000), 0o600)
		}},
		{"a file is gone", func(dir string) error { return os.Remove(filepath.Join(dir, "pkg0", "file007.py")) }},
		{"bytes in the midst of a large file", change("weights.bin", func(b []byte) []byte {
			return slices.Insert(b, len(b)/2, 1, 2, 3)
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := sources(t, 300)
			if err := os.WriteFile(filepath.Join(dir, "weights.bin"), noise(99, 600<<10), 0o600); err != nil {
				t.Fatal(err)
			}
			before := measured(t, tiny(), dir)
			if err := test.edit(dir); err != nil {
				t.Fatal(err)
			}
			after := measured(t, tiny(), dir)
			if after.Sum == before.Sum {
				t.Fatal("the digest is the same")
			}
			fresh := 0
			for _, p := range after.Parts {
				if !slices.Contains(before.Parts, p) {
					fresh++
				}
			}
			if len(after.Parts) < 20 || fresh > 4 {
				t.Errorf("%d of %d parts are new, want at most 4 of many", fresh, len(after.Parts))
			}
		})
	}
}

func TestPackingEndsWithItsReceiver(t *testing.T) {
	dir := sources(t, 100)
	full := errors.New("the receiver is full")
	calls := 0
	_, _, err := tiny().pack(dir, func(Part, []byte) error {
		calls++
		return full
	})
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("got %v after %d parts, want %v after 1", err, calls, full)
	}
	// What cannot be read ends it too, and no part is made of the beginning.
	parts := 0
	_, _, err = tiny().pack(dir, func(Part, []byte) error {
		parts++
		return os.Truncate(filepath.Join(dir, "pkg6", "file097.py"), 0)
	})
	whole := measured(t, tiny(), dir)
	if err == nil || !strings.Contains(err.Error(), "file097.py: it became shorter") || parts >= len(whole.Parts) {
		t.Errorf("got %v after %d of %d parts, want the file's error before the last", err, parts, len(whole.Parts))
	}
}
