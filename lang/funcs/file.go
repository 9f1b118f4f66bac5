package funcs

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/lang/files"
)

// fileFunctions are those that know paths; relative ones start at the folder.
func fileFunctions(in files.Folder) []libraryFunction {
	path := []string{"path: absolute, or from the directory of the configuration; ~/ is the home directory"}
	fns := []libraryFunction{
		{
			name: "abspath", text: "The absolute form of a path.", returns: "string",
			fn: stringFunc(in.Within), params: path, example: `abspath("/data/../corpus")`,
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
				_, text, err := in.ReadText(s)
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
			fn: stringFunc(in.ExpandHome), params: []string{"path: the path"}, example: `pathexpand("/etc/hosts")`,
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
func dataFunc(in files.Folder, of func([]byte) string) function.Function {
	return stringFunc(func(path string) (string, error) {
		_, data, err := in.ReadData(path)
		if err != nil {
			return "", err
		}
		return of(data), nil
	})
}

func fileExistsFunc(in files.Folder) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, err := in.Within(args[0].AsString())
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
func fileSetFunc(in files.Folder) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.Set(cty.String)),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path, err := in.Within(args[0].AsString())
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

// checkGlob rejects patterns that leave the directory, and those for which
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
