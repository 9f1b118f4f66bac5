package modules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// hashed is a SHA-256 as the lock file has it.
func hashed(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

func isHash(s string) bool { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(s) }

// filesHash is a hash of the files below a directory: of their paths, their
// content, and whether they are executable. Anything but files and directories
// is an error: archives hold nothing else.
func filesHash(dir string) (string, error) {
	type line struct{ path, text string }
	var lines []line
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%s is not a file, and archives hold nothing else", path)
		}
		text, err := fileLine(path, filepath.ToSlash(name))
		lines = append(lines, line{name, text})
		return err
	})
	if err != nil {
		return "", err
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.path, b.path) })
	sum := sha256.New()
	for _, l := range lines {
		_, _ = io.WriteString(sum, l.text) // never fails
	}
	return hashed(sum.Sum(nil)), nil
}

func fileLine(path, name string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	kind := "file"
	if info.Mode()&0o100 != 0 {
		kind = "executable"
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x %s %q\n", sum.Sum(nil), kind, name), nil
}
