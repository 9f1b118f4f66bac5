package schema

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// fileFunctions are those that know paths; relative ones start at dir.
func fileFunctions(dir string) map[string]function.Function {
	in := func(path string) string {
		if filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
		return filepath.Join(dir, path)
	}
	return map[string]function.Function{
		"abspath":  namedStringFunc("path", "The absolute form of a path.", func(s string) (string, error) { return in(s), nil }),
		"basename": namedStringFunc("path", "The last part of a path.", func(s string) (string, error) { return filepath.Base(s), nil }),
		"dirname":  namedStringFunc("path", "A path without its last part.", func(s string) (string, error) { return filepath.Dir(s), nil }),
		"file":     namedStringFunc("path", "What a file contains, as text.", func(s string) (string, error) { return readText(in(s)) }),
		"filebase64": namedStringFunc("path", "What a file contains, in base64.", func(s string) (string, error) {
			data, err := readData(in(s))
			return base64.StdEncoding.EncodeToString(data), err
		}),
		"filesha256": namedStringFunc("path", "SHA-256 of a file, in hex.", func(s string) (string, error) {
			data, err := readData(in(s))
			return hexSum(data), err
		}),
		"fileexists": function.New(&function.Spec{
			Description:  "Whether there is a file.",
			Params:       []function.Parameter{{Name: "path", Type: cty.String}},
			Type:         function.StaticReturnType(cty.Bool),
			RefineResult: notNull,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				info, err := os.Stat(in(args[0].AsString()))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return cty.NilVal, function.NewArgError(0, err)
				}
				return cty.BoolVal(err == nil && info.Mode().IsRegular()), nil
			},
		}),
		"fileset":    fileSetFunc(in),
		"pathexpand": namedStringFunc("path", "A path with ~ replaced by the home directory.", expandHome),
	}
}

func readData(path string) ([]byte, error) {
	data, err := readFile(path, maxDataSize, false)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

func readText(path string) (string, error) {
	data, err := readData(path)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is not UTF-8 text; use filebase64()", path)
	}
	return string(data), nil
}

func expandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~")), nil
}

// fileSetFunc lists the files below a directory that match a pattern, in which
// ** stands for any number of directories.
func fileSetFunc(in func(string) string) function.Function {
	return function.New(&function.Spec{
		Description:  "The files below a directory that match a pattern, relative to it.",
		Params:       []function.Parameter{{Name: "dir", Type: cty.String}, {Name: "pattern", Type: cty.String}},
		Type:         function.StaticReturnType(cty.Set(cty.String)),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			dir := in(args[0].AsString())
			if _, err := os.Stat(dir); err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			names, err := doublestar.Glob(os.DirFS(dir), args[1].AsString(), doublestar.WithFilesOnly())
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			if len(names) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			slices.Sort(names)
			vals := make([]cty.Value, 0, len(names))
			for _, name := range names {
				vals = append(vals, cty.StringVal(name))
			}
			return cty.SetVal(vals), nil
		},
	})
}

func base64EncodeFunc() function.Function {
	return stringFunc("A string's bytes in base64.", func(s string) (string, error) {
		return base64.StdEncoding.EncodeToString([]byte(s)), nil
	})
}

func base64DecodeFunc() function.Function {
	return stringFunc("The text that base64 stands for.", func(s string) (string, error) {
		data, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return "", errors.New("it is not base64")
		}
		if !utf8.Valid(data) {
			return "", errors.New("the decoded bytes are not UTF-8 text")
		}
		return string(data), nil
	})
}

// templateFileFunc renders a file as a template. The template may call fns, but
// not templatefile itself.
func templateFileFunc(dir string, fns map[string]function.Function) function.Function {
	callable := maps.Clone(fns)
	render := func(path string, vars cty.Value) (cty.Value, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		text, err := readText(path)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		if diags := checkTemplateNesting([]byte(text), path); diags.HasErrors() {
			return cty.NilVal, templateError(0, diags)
		}
		expr, diags := hclsyntax.ParseTemplate([]byte(text), path, hcl.InitialPos)
		if diags.HasErrors() {
			return cty.NilVal, templateError(0, diags)
		}
		val, diags := expr.Value(&hcl.EvalContext{Variables: vars.AsValueMap(), Functions: callable})
		if diags.HasErrors() {
			return cty.NilVal, templateError(1, diags)
		}
		return val, nil
	}
	return function.New(&function.Spec{
		Description: "A file rendered as a template with variables.",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[0].IsKnown() || !args[1].IsKnown() {
				return cty.DynamicPseudoType, nil
			}
			if ty := args[1].Type(); !ty.IsObjectType() && !ty.IsMapType() {
				return cty.NilType, function.NewArgErrorf(1, "want a map of variables")
			}
			args[0], _ = args[0].Unmark()
			vars, _ := args[1].Unmark()
			val, err := render(args[0].AsString(), vars)
			if err != nil {
				return cty.NilType, err
			}
			return val.Type(), nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return render(args[0].AsString(), args[1]) },
	})
}

// templateError is the first error of a template, which has a place of its own.
func templateError(arg int, diags hcl.Diagnostics) error {
	first := diags[slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })]
	return function.NewArgErrorf(arg, "%s: %s", place(*first.Subject), strings.TrimSuffix(first.Detail, "."))
}
