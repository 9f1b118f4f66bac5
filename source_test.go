package fray_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is what the rules look at in one package.
type source struct {
	path    string // within the module
	files   []file
	reaches []string // import paths of everything it is built from
}

type file struct {
	name    string // path within the module
	imports []string
	clock   []string // uses of the clock, such as time.Now
}

// readModule reads every package of the module that has code besides tests.
func readModule(t *testing.T) ([]source, error) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,Name,Module,Deps", "./...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w\n%s", err, stderr.String())
	}
	var sources []source
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath, Dir, Name string
			Module                *struct{ Path string }
			Deps                  []string
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			return sources, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode package list: %w", err)
		}
		if listed.Module == nil || listed.Module.Path != module || listed.ImportPath == module {
			continue // not ours, or this test's own directory
		}
		s := source{path: short(listed.ImportPath), reaches: listed.Deps}
		if s.files, err = readFiles(listed.Dir, s.path, listed.Name); err != nil {
			return nil, err
		}
		if len(s.files) > 0 { // else it holds tests only
			sources = append(sources, s)
		}
	}
}

// readFiles reads the package's files for all platforms, which a list made on
// one platform leaves out.
func readFiles(dir, within, packageName string) ([]file, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	var files []file
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse file: %w", err)
		}
		if parsed.Name.Name != packageName {
			continue // a generator, run by its name
		}
		files = append(files, inspect(path.Join(within, filepath.Base(name)), parsed))
	}
	return files, nil
}

// inspect notes what a file imports and where it reads the clock.
func inspect(name string, parsed *ast.File) file {
	f := file{name: name}
	clock := ""
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			imported = spec.Path.Value
		}
		f.imports = append(f.imports, imported)
		if imported == "time" {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
	}
	if clock == "." {
		f.clock = append(f.clock, `import . "time"`)
	}
	forbidden := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(forbidden, sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && clock != "" && x.Name == clock {
				f.clock = append(f.clock, "time."+sel.Sel.Name)
			}
		}
		return true
	})
	return f
}

func TestInspect(t *testing.T) {
	tests := []struct {
		name, body string
		want       file
	}{
		{"durations and types", `import "time"; var _ = time.Second; func f(now time.Time) {}`,
			file{imports: []string{"time"}}},
		{"called", `import "time"; var _ = time.Now()`,
			file{imports: []string{"time"}, clock: []string{"time.Now"}}},
		{"taken as a value", `import "time"; var now = time.Now`,
			file{imports: []string{"time"}, clock: []string{"time.Now"}}},
		{"under another name", `import t "time"; func f(x t.Time) { t.Sleep(t.Since(x)) }`,
			file{imports: []string{"time"}, clock: []string{"time.Sleep", "time.Since"}}},
		{"under no name", `import . "time"; var _ = Now()`,
			file{imports: []string{"time"}, clock: []string{`import . "time"`}}},
		{"another package's Now", `import "example.com/clock"; var _ = clock.Now()`,
			file{imports: []string{"example.com/clock"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+test.body, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got := inspect("x.go", parsed)
			if !slices.Equal(got.imports, test.want.imports) || !slices.Equal(got.clock, test.want.clock) {
				t.Errorf("got imports %q, clock %q\nwant imports %q, clock %q", got.imports, got.clock, test.want.imports, test.want.clock)
			}
		})
	}
}
