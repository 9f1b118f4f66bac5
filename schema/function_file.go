package schema

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// fileFunctions are those that know paths; relative ones start at the folder.
func fileFunctions(in folder) []libraryFunction {
	path := []string{"path: absolute, or from the directory of the configuration; ~/ is the home directory"}
	fns := []libraryFunction{
		{
			name: "abspath", text: "The absolute form of a path.", returns: "string",
			fn: stringFunc(in.within), params: path, example: `abspath("/data/../corpus")`,
		},
		{
			name: "basename", text: "The last part of a path.", returns: "string",
			fn: stringFunc(func(s string) (string, error) { return filepath.Base(s), nil }), params: []string{"path: the path"}, example: `basename("data/train/a.txt")`,
		},
		{
			name: "dirname", text: "A path without its last part.", returns: "string",
			fn: stringFunc(func(s string) (string, error) { return filepath.Dir(s), nil }), params: []string{"path: the path"}, example: `dirname("data/train/a.txt")`,
		},
		{
			name: "file", text: "What a file contains, as text.", returns: "string",
			fn: stringFunc(func(s string) (string, error) {
				_, text, err := in.readText(s)
				return text, err
			}),
			params: path, example: `file("hello.txt")`,
		},
		{
			name: "filebase64", text: "What a file contains, in base64.", returns: "string",
			fn: dataFunc(in, base64.StdEncoding.EncodeToString), params: path, example: `filebase64("hello.txt")`,
		},
		{
			name: "fileexists", text: "Whether there is a file. A directory in its place is an error.", returns: "bool",
			fn: fileExistsFunc(in), params: path, example: `fileexists("missing.txt")`,
		},
		{
			name: "fileset", text: "The files below a directory that match a pattern, relative to it.", returns: "set(string)", fn: fileSetFunc(in),
			params:  []string{"path: the directory", "pattern: with *, ?, [a-z], {a,b}, and ** for any number of directories"},
			example: `fileset(".", "**/*.txt")`,
		},
		{
			name: "pathexpand", text: "A path with ~ replaced by the home directory.", returns: "string",
			fn: stringFunc(in.expandHome), params: []string{"path: the path"}, example: `pathexpand("/etc/hosts")`,
		},
	}
	for _, d := range digests() {
		fns = append(fns, libraryFunction{
			name: d.fileName(), text: d.text("a file"), returns: "string", fn: dataFunc(in, d.of), params: path, example: d.fileName() + `("hello.txt")`,
		})
	}
	return fns
}

// dataFunc makes a function of what a file contains.
func dataFunc(in folder, of func([]byte) string) function.Function {
	return stringFunc(func(path string) (string, error) {
		_, data, err := in.readData(path)
		if err != nil {
			return "", err
		}
		return of(data), nil
	})
}

func (f folder) readData(path string) (full string, data []byte, err error) {
	full, err = f.within(path)
	if err == nil {
		data, err = f.Read(full, ReadData)
	}
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", full, err)
	}
	return full, data, nil
}

func (f folder) readText(path string) (full, text string, err error) {
	full, data, err := f.readData(path)
	if err != nil {
		return "", "", err
	}
	if !utf8.Valid(data) {
		return "", "", fmt.Errorf("%s is not UTF-8 text; use filebase64()", full)
	}
	return full, string(data), nil
}

func fileExistsFunc(in folder) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, err := in.within(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			kind, err := in.Kind(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return cty.False, nil
			case err != nil:
				return cty.NilVal, function.NewArgError(0, err)
			case kind.IsDir():
				return cty.NilVal, function.NewArgErrorf(0, "%s is a directory, not a file", path)
			case !kind.IsRegular():
				return cty.NilVal, function.NewArgErrorf(0, "%s is no regular file", path)
			}
			return cty.True, nil
		},
	})
}

// fileSetFunc lists the files below a directory that match a pattern, in which
// ** stands for any number of directories.
func fileSetFunc(in folder) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.Set(cty.String)),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, err := in.within(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			pattern := filepath.ToSlash(filepath.Clean(args[1].AsString()))
			if err := checkGlob(pattern); err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			names, err := in.Glob(path, pattern)
			switch {
			case err != nil:
				return cty.NilVal, function.NewArgError(1, err)
			case len(names) == 0:
				return cty.SetValEmpty(cty.String), nil
			}
			vals := make([]cty.Value, 0, len(names))
			for _, name := range names {
				vals = append(vals, cty.StringVal(name))
			}
			return cty.SetVal(vals), nil
		},
	})
}

// checkGlob refuses patterns that leave the directory, and those for which
// matching a name may take long.
func checkGlob(pattern string) error {
	switch {
	case pattern == ".." || strings.HasPrefix(pattern, "../") || strings.HasPrefix(pattern, "/"):
		return errors.New("the pattern leaves the directory; give the directory as the first argument")
	case len(pattern) > 1000 || strings.Count(pattern, "{") > 4 || strings.Count(pattern, "**") > 4:
		return errors.New("the pattern is too complex: want at most 1000 characters, 4 times {…} and 4 times **")
	}
	return nil
}

// countingFS is a directory of which so many entries may be looked at.
type countingFS struct {
	fsys fs.FS
	left int
}

var (
	_ fs.ReadDirFS = (*countingFS)(nil)
	_ fs.StatFS    = (*countingFS)(nil)
)

func (c *countingFS) spend(n int) error {
	if c.left -= n; c.left < 0 {
		return errors.New("too many files")
	}
	return nil
}

// Open implements fs.FS.
func (c *countingFS) Open(name string) (fs.File, error) {
	if err := c.spend(1); err != nil {
		return nil, err
	}
	return c.fsys.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if c.left < 0 {
		return nil, c.spend(0)
	}
	entries, err := fs.ReadDir(c.fsys, name)
	if err != nil {
		return nil, err
	}
	return entries, c.spend(len(entries))
}

// Stat implements fs.StatFS.
func (c *countingFS) Stat(name string) (fs.FileInfo, error) {
	if err := c.spend(1); err != nil {
		return nil, err
	}
	return fs.Stat(c.fsys, name)
}
