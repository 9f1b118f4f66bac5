package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/lang/format"
)

// maxFormatFile bounds what is read: no configuration is larger, but a file
// that has a wrong name may be.
const maxFormatFile = 64 << 20

// formatFile is a file to format.
type formatFile struct {
	shown string // the way it was named
	real  string // behind links
	mode  fs.FileMode
}

// findFormatFiles lists the files that paths stand for, each once, and says what
// is wrong with paths that stand for none.
func findFormatFiles(paths []string, recursive bool) ([]formatFile, []error) {
	f := formatFinder{recursive: recursive, seen: map[string]bool{}}
	for _, path := range paths {
		path = filepath.Clean(path)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			f.problems = append(f.problems, fmt.Errorf("format: %w", err))
		case info.IsDir():
			f.dir(path)
		case strings.HasSuffix(path, ".json"):
			f.problems = append(f.problems, fmt.Errorf("format %s: JSON has a style of its own; fray fmt is for .hcl and .frayvars files", path))
		case !info.Mode().IsRegular():
			f.problems = append(f.problems, fmt.Errorf("format %s: it is no regular file; fray fmt - reads standard input", path))
		default:
			f.file(path, info)
		}
	}
	return f.files, f.problems
}

type formatFinder struct {
	recursive bool
	seen      map[string]bool // by what is behind links
	files     []formatFile
	problems  []error
}

// dir lists a directory, and those below it, without following links to any:
// they may lead back.
func (f *formatFinder) dir(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		f.problems = append(f.problems, fmt.Errorf("format: %w", err))
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		full := filepath.Join(path, name)
		switch {
		case strings.HasPrefix(name, "."):
		case entry.IsDir() && f.recursive:
			f.dir(full)
		case entry.IsDir(), !strings.HasSuffix(name, ".hcl") && !strings.HasSuffix(name, ".frayvars"):
		default:
			info, err := os.Stat(full)
			if err != nil {
				f.problems = append(f.problems, fmt.Errorf("format: %w", err))
			} else if info.Mode().IsRegular() {
				f.file(full, info)
			}
		}
	}
}

func (f *formatFinder) file(path string, info fs.FileInfo) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		f.problems = append(f.problems, fmt.Errorf("format: %w", err))
		return
	}
	if f.seen[real] {
		return
	}
	f.seen[real] = true
	f.files = append(f.files, formatFile{shown: path, real: real, mode: info.Mode().Perm()})
}

// format formats the file, and writes it if it is to be.
func (f formatFile) format(flags formatFlags) formatted {
	result := formatted{file: f}
	src, err := f.read()
	if err != nil {
		result.err = fmt.Errorf("format %s: %w", f.shown, err)
		return result
	}
	out, diags := format.Source(src, f.shown)
	result.diags = diags
	if len(diags) > 0 {
		result.src = src
	}
	result.dirty = !bytes.Equal(src, out)
	if result.dirty && flags.diff {
		result.src, result.out = src, out
	}
	if flags.printsResult() {
		result.out = out
	}
	if result.dirty && flags.write {
		result.err = durable.Replace(f.real, out, f.mode)
	}
	return result
}

func (f formatFile) read() ([]byte, error) {
	info, err := os.Stat(f.real)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFormatFile {
		return nil, fmt.Errorf("it is larger than %d MiB, which no configuration is", maxFormatFile>>20)
	}
	return os.ReadFile(f.real)
}
